//! Capacity and the rate limit.

use serde_json::json;
use slipway_app::ports::substrate::{Error, Substrate};
use slipway_core::broker::observation::CompositeReport;

use super::support::Bench;

#[tokio::test]
async fn fallbacks_are_tried_in_order_and_what_is_exhausted_is_not_asked_for_again() {
    let bench = Bench::new().await;
    bench.provider.exhaust("cx22@nbg1", "resource_unavailable");
    bench.provider.exhaust("cx32@nbg1", "placement_error");
    let composite = bench.composite().with("fallbacks", json!(["cx32@nbg1", "cx22@fsn1"]));
    bench.up(&composite).await;
    assert_eq!(
        (bench.server().server_type, bench.server().location),
        ("cx22".into(), "fsn1".into())
    );
    assert_eq!(bench.requests("POST /servers"), 3);

    // Another resource goes straight to what there is.
    let mut second = composite.clone();
    second.id = 11;
    bench.up(&second).await;
    assert_eq!(bench.requests("POST /servers"), 4);
    bench.assert_fits();
}

#[tokio::test]
async fn a_lack_of_capacity_says_what_was_tried_and_sends_nothing_more() {
    let bench = Bench::new().await;
    bench.provider.exhaust("cx22@nbg1", "resource_unavailable");
    bench.provider.exhaust("cx32@nbg1", "resource_limit_exceeded");
    let composite = bench.composite().with("fallbacks", json!(["cx32@nbg1", "cx22@nbg1"]));
    for _ in 0..5 {
        let refused = bench.apply(&composite).await.unwrap_err();
        let Error::NoCapacity(said) = &refused else { panic!("{refused:?}") };
        for part in ["cx22@nbg1", "resource_unavailable", "cx32@nbg1", "resource_limit_exceeded"] {
            assert!(said.contains(part), "{said}");
        }
    }
    assert_eq!(bench.requests("POST /servers"), 2, "each offer once");
    bench.assert_fits();
}

#[tokio::test]
async fn creates_stop_before_the_limit_and_deletions_do_not() {
    let bench = Bench::new().await;
    let live = bench.up(&bench.composite()).await;
    // 6 %: too little for an apply, enough for an observation.
    bench.provider.set_rate(3_600, 216);
    bench
        .until("known to be scarce", async || match bench.report().await {
            CompositeReport::Present(_) if bench.engine.identity().await.is_ok() => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    let mut second = bench.composite();
    second.id = 11;
    let refused = bench.apply(&second).await.unwrap_err();
    assert!(refused.to_string().contains("rate limit"), "{refused}");
    bench.provider.set_rate(3_600, 100);
    bench.engine.identity().await.unwrap();
    bench.engine.delete(&bench.address(10), &live.uid).await.unwrap();
    assert_eq!(bench.requests("DELETE /servers"), 1);
    bench.assert_fits();
}

#[tokio::test]
async fn a_refusal_for_the_limit_is_respected_and_proves_nothing() {
    let bench = Bench::new().await;
    bench.up(&bench.composite()).await;
    bench.provider.set_rate(3_600, 0);
    let engine = bench.engine_of(super::support::OURS);
    let seen = engine.observe(&[bench.address(10)]).await.remove(0);
    let CompositeReport::Unknown { reason } = seen else { panic!("{seen:?}") };
    assert!(reason.contains("rate"), "{reason}");
    let before = bench.provider.requests().len();
    for _ in 0..20 {
        engine.observe(&[bench.address(10)]).await;
    }
    assert!(bench.provider.requests().len() - before <= 1, "nothing is sent meanwhile");
    // One that has a list of its own goes on with it for a while.
    let seen = bench.report().await;
    assert!(matches!(seen, CompositeReport::Present(_) | CompositeReport::Unknown { .. }));
}
