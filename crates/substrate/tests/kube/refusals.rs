//! Answers that a healthy server does not give on demand: too busy, broken, too
//! slow, too old.

use std::net::SocketAddr;
use std::time::Duration;

use slipway_app::ports::Management;
use slipway_app::ports::substrate::{Error, Substrate};
use slipway_testkit::kube::{ADMIN, Fault, FaultProxy, Rule, refusal, shared, watch_expired};
use slipway_testkit::network::Relay;

use crate::support::{Bench, is_absent, is_ready, is_unknown, loose, reason, until_named};

#[tokio::test]
async fn a_server_that_is_busy_or_broken_proves_nothing() {
    const NAME: &str = "a_server_that_is_busy_or_broken_proves_nothing";
    let Some(kubernetes) = shared(NAME).await else { return };
    let proxy = FaultProxy::before(kubernetes).await;
    let kubeconfig = proxy.redirect(&kubernetes.kubeconfig(ADMIN));
    let Some(bench) = Bench::through(NAME, &kubeconfig, None).await else { return };
    let (there, never) = (bench.composite(loose()), bench.composite(loose()));
    let uid = bench.apply(&there).await.uid;
    let table = [
        (429, "TooManyRequests", "has too much to do"),
        (500, "InternalError", "failed with 500"),
        (503, "ServiceUnavailable", "failed with 503"),
        (401, "Unauthorized", "renew the kubeconfig"),
        (403, "the user cannot do this", "grant it to our account"),
    ];
    for (code, why, said) in table {
        let refuse = |method: &str, path: &str| {
            proxy.clear();
            let answer = Fault::Answer(refusal(code, why));
            proxy.add(Rule::new(answer).method(method).path(path));
        };
        // Each of the requests that prove an absence.
        for question in [never.name().as_str(), "/kube-system", "customresourcedefinitions"] {
            refuse("GET", question);
            let report = bench.report(&never).await;
            assert!(is_unknown(&report) && reason(&report).contains(said), "{report:?}");
        }
        refuse("PATCH", &never.name());
        let refused = bench.engine.apply(&never.rendered()).await.unwrap_err();
        assert!(matches!(&refused, Error::Failed(text) if text.contains(said)), "{refused:?}");
        refuse("DELETE", &there.name());
        let refused = bench.engine.delete(&there.address(), &uid).await.unwrap_err();
        assert!(matches!(&refused, Error::Failed(text) if text.contains(said)), "{refused:?}");
        assert!(bench.live(&there).await.uid == uid, "what is watched is known all the same");
    }
    proxy.clear();
    assert!(is_absent(&bench.report(&never).await));
    bench.apply(&never).await;
}

/// If the kinds of a cluster could not be read, they do not count as missing:
/// the message would make somebody install Crossplane over Crossplane.
#[tokio::test]
async fn a_kind_that_could_not_be_asked_for_is_not_missing() {
    const NAME: &str = "a_kind_that_could_not_be_asked_for_is_not_missing";
    let Some(kubernetes) = shared(NAME).await else { return };
    let proxy = FaultProxy::before(kubernetes).await;
    let kubeconfig = proxy.redirect(&kubernetes.kubeconfig(ADMIN));
    let Some(bench) = Bench::through(NAME, &kubeconfig, None).await else { return };
    for group in ["/apis/apiextensions.crossplane.io", "/apis/external-secrets.io"] {
        proxy.clear();
        let answer = Fault::Answer(refusal(503, "ServiceUnavailable"));
        proxy.add(Rule::new(answer).method("GET").path(group));
        let refused = bench.engine.verify().await.unwrap_err().to_string();
        assert!(refused.contains("failed with 503"), "{refused}");
    }
    proxy.clear();
    let problem = bench.engine.verify().await.unwrap().problem.unwrap_or_default();
    assert!(problem.contains("install Crossplane"), "nobody installed it here: {problem}");
}

#[tokio::test]
async fn a_watch_that_is_too_old_lists_again() {
    const NAME: &str = "a_watch_that_is_too_old_lists_again";
    let Some(kubernetes) = shared(NAME).await else { return };
    let proxy = FaultProxy::before(kubernetes).await;
    let kubeconfig = proxy.redirect(&kubernetes.kubeconfig(ADMIN));
    let Some(bench) = Bench::through(NAME, &kubeconfig, None).await else { return };
    proxy.add(Rule::new(Fault::Answer(watch_expired())).path("watch=true").times(2));
    let composite = bench.composite(loose());
    bench.engine.apply(&composite.rendered()).await.unwrap();
    bench.make_ready(&composite).await;
    until_named(&bench.engine, composite.id).await;
    bench.until(&composite, "it is ready", is_ready).await;
    let listed = |records: &[slipway_testkit::kube::AuditRecord]| {
        records.iter().filter(|record| record.verb == "list").count()
    };
    slipway_testkit::wait::until(crate::support::TIMEOUT, "three lists", async || {
        listed(&bench.requests()) >= 3
    })
    .await;
}

#[tokio::test]
async fn slow_answers_are_waited_for_and_none_at_all_is_not() {
    const NAME: &str = "slow_answers_are_waited_for_and_none_at_all_is_not";
    let Some(kubernetes) = shared(NAME).await else { return };
    let address: SocketAddr = kubernetes.url().strip_prefix("https://").unwrap().parse().unwrap();
    let relay = Relay::to(address).await.unwrap();
    let through = format!("https://{}", relay.address());
    let kubeconfig = kubernetes.kubeconfig(ADMIN).replace(&kubernetes.url(), &through);
    let Some(bench) = Bench::through(NAME, &kubeconfig, None).await else { return };
    relay.slow_down(Duration::from_millis(100));
    let (there, never) = (bench.composite(loose()), bench.composite(loose()));
    bench.apply(&there).await;
    assert!(is_absent(&bench.report(&never).await));
    relay.silence();
    let report = bench.report(&never).await;
    assert!(is_unknown(&report) && reason(&report).contains("no answer within"), "{report:?}");
    relay.restore();
    bench.until(&never, "the absence is proven again", is_absent).await;
}
