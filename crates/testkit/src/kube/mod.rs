//! A real Kubernetes API for tests: etcd, kube-apiserver and, if wanted,
//! kube-controller-manager on the loopback address, without any node.
//!
//! Sources of the programs, in search order:
//! 1. `KUBEBUILDER_ASSETS` names a folder with `kube-apiserver`, and maybe
//!    `kube-controller-manager` and `etcd`;
//! 2. the user's cache folder, where `cargo xtask test` puts what it builds
//!    from Debian's source package; checksums are compared with [`PINNED`];
//! 3. otherwise there is no Kubernetes: the test prints one line and returns.
//!    With `SLIPWAY_REQUIRE_KUBE=1` it fails instead.
//!
//! ```no_run
//! # async fn a_test() {
//! let Some(kubernetes) = slipway_testkit::kube::shared("my_test").await else { return };
//! let kubeconfig = kubernetes.kubeconfig("admin");
//! // … or, with the feature `kube-client`, kubernetes.client("admin").await
//! # }
//! ```
//!
//! Tests that share an environment use a namespace of their own. A test that
//! takes servers down starts its own environment
//! ([`KubeEnvironment::for_test`]).
//!
//! A [`FaultProxy`] before the API server delays, drops, duplicates or answers
//! requests; clients of the proxy see the faults, everybody else does not.
//!
//! Must not: know our kinds. Each test installs what it needs into the API.

mod environment;
mod shared;

mod audit;
#[cfg(feature = "kube-client")]
mod client;
mod fault_proxy;
mod users;

mod binaries;
mod certificates;
mod parts;
mod readiness;
mod watchdog;

pub use audit::{AuditRecord, AuditedObject};
pub use binaries::{
    ASSETS_VARIABLE, Binaries, PINNED, cache_folder, checksum, etcd_installed, find,
};
pub use environment::{KubeEnvironment, Options};
pub use fault_proxy::{
    Exchange, Fault, FaultProxy, Forwarding, Odds, Rule, refusal, watch_expired,
};
pub use parts::Part;
pub use shared::{REQUIRE_VARIABLE, shared};
pub use users::{ADMIN, OTHER_ADMIN, User};
