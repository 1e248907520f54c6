//! Watches: which changes they report, and that a silent watch is detected.

use std::net::SocketAddr;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::json;
use slipway_app::ports::substrate::Substrate;
use slipway_testkit::kube::{ADMIN, shared};
use slipway_testkit::network::Relay;

use crate::support::{Bench, TIMEOUT, is_absent, is_ready, loose, typed, until_named};

#[tokio::test]
async fn a_change_names_its_attempt_and_a_touch_nobody() {
    const NAME: &str = "a_change_names_its_attempt_and_a_touch_nobody";
    let Some(bench) = Bench::new(NAME).await else { return };
    let (touched, changed) = (bench.composite(loose()), bench.composite(loose()));
    let last = bench.composite(loose());
    for composite in [&touched, &changed, &last] {
        bench.apply(composite).await;
        bench.conditions(composite, json!([{ "type": "Ready", "status": "False" }])).await;
    }
    // A watch reports in order: after this change, all earlier ones are reported.
    bench.make_ready(&last).await;
    bench.until(&last, "the last one is ready", is_ready).await;
    bench.engine.changed().now_or_never();
    bench.write(&touched, json!({ "metadata": { "annotations": { "a": "b" } } })).await;
    let waiting = json!([{ "type": "Synced", "status": "False", "message": "again" }]);
    bench.conditions(&touched, waiting).await;
    bench.make_ready(&changed).await;
    let told = tokio::time::timeout(TIMEOUT, bench.engine.changed()).await;
    assert_eq!(told.unwrap(), [changed.id]);
    assert!(is_ready(&bench.report(&changed).await), "what is told can be seen");
}

#[tokio::test]
async fn a_deletion_by_hand_names_its_attempt_twice() {
    const NAME: &str = "a_deletion_by_hand_names_its_attempt_twice";
    let Some(bench) = Bench::new(NAME).await else { return };
    let composite = bench.composite(typed());
    bench.apply(&composite).await;
    let objects = bench.objects(&composite);
    objects.delete(&composite.name(), &Default::default()).await.unwrap();
    // The creation may be reported first.
    loop {
        until_named(&bench.engine, composite.id).await;
        if bench.live(&composite).await.terminating {
            break;
        }
    }
    bench.write(&composite, json!({ "metadata": { "finalizers": null } })).await;
    loop {
        until_named(&bench.engine, composite.id).await;
        if is_absent(&bench.report(&composite).await) {
            break;
        }
    }
}

/// A connection that stays open and shows nothing any more causes no error.
#[tokio::test]
async fn a_watch_that_has_gone_silent_is_found_out_by_the_sweep() {
    const NAME: &str = "a_watch_that_has_gone_silent_is_found_out_by_the_sweep";
    let Some(kubernetes) = shared(NAME).await else { return };
    let address: SocketAddr = kubernetes.url().strip_prefix("https://").unwrap().parse().unwrap();
    let relay = Relay::to(address).await.unwrap();
    let through = format!("https://{}", relay.address());
    let kubeconfig = kubernetes.kubeconfig(ADMIN).replace(&kubernetes.url(), &through);
    let sweep = Some(Duration::from_millis(500));
    let Some(bench) = Bench::through(NAME, &kubeconfig, sweep).await else { return };
    let composite = bench.composite(loose());
    bench.apply(&composite).await;
    relay.swallow();
    bench.make_ready(&composite).await;
    // By the time of these answers, the server has sent the event.
    bench.object(&composite).await;
    bench.object(&composite).await;
    relay.restore();
    until_named(&bench.engine, composite.id).await;
    bench.until(&composite, "it is ready", is_ready).await;
}
