//! A proxy before the API server that treats each request alone and harms some
//! of them: by [`Rule`]s, which a test sets, or at random, from a seed and
//! [`Odds`].
//!
//! ```no_run
//! # use slipway_testkit::kube::{ADMIN, Fault, FaultProxy, KubeEnvironment, Rule};
//! # async fn a_test(kubernetes: &KubeEnvironment) {
//! let proxy = FaultProxy::before(kubernetes).await;
//! let kubeconfig = proxy.redirect(&kubernetes.kubeconfig(ADMIN));
//! // The next delete of `x` is cut, and lands when the test says so.
//! proxy.add(Rule::new(Fault::CutThenHold).method("DELETE").path("/x").times(1));
//! // … the client deletes and sees a broken connection; somebody makes `x` again …
//! assert_eq!(proxy.release().await, 1);
//! assert_eq!(proxy.exchanges().last().unwrap().statuses(), [409]);
//! # }
//! ```
//!
//! It terminates TLS on both sides, with the server's own certificate, and
//! speaks HTTP/1.1. It reads a request completely before it does anything, so
//! that one that it has received lands whatever becomes of the client, as a
//! request in the queue of a busy server does. Answers are streamed, so watches
//! work. Upgraded connections (`exec`, `port-forward`) do not.

mod connection;
mod fault;
mod http;
mod proxy;

pub use fault::{Fault, Odds, Rule, refusal, watch_expired};
pub use proxy::{Exchange, FaultProxy, Forwarding};
