//! Several replicas on one cluster.

use futures::future::join;
use slipway_app::ports::substrate::{Error, Substrate};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::ids::ClaimToken;

use crate::support::{Bench, loose, report};

#[tokio::test]
async fn two_that_apply_the_same_do_not_conflict() {
    const NAME: &str = "two_that_apply_the_same_do_not_conflict";
    let Some(bench) = Bench::new(NAME).await else { return };
    let another = bench.another_engine().await;
    for _ in 0..5 {
        let rendered = bench.composite(loose()).rendered();
        let (one, two) = join(bench.engine.apply(&rendered), another.apply(&rendered)).await;
        let uid =
            |report: Result<CompositeReport, Error>| report.unwrap().live().unwrap().uid.clone();
        assert_eq!(uid(one), uid(two));
    }
    assert_eq!((bench.engine.overruled(), another.overruled()), (0, 0));
}

#[tokio::test]
async fn a_newer_claim_has_the_last_word() {
    let Some(bench) = Bench::new("a_newer_claim_has_the_last_word").await else { return };
    let another = bench.another_engine().await;
    for _ in 0..5 {
        let mut composite = bench.composite(loose());
        bench.apply(&composite).await;
        report(&another, &composite.address()).await;
        composite.claim_token = 4;
        composite.busy_seconds = 40;
        let older = composite.rendered();
        composite.claim_token = 5;
        composite.busy_seconds = 50;
        let newer = composite.rendered();
        let (old, new) = join(bench.engine.apply(&older), another.apply(&newer)).await;
        new.unwrap();
        if let Err(refused) = old {
            let superseded = Error::Superseded { ours: ClaimToken(4), found: ClaimToken(5) };
            assert_eq!(refused, superseded);
        }
        let object = bench.object(&composite).await;
        assert_eq!(object["spec"]["parameters"]["busy_seconds"], 50, "whoever came last");
        bench
            .until(&composite, "the newer one is seen", |report| {
                report.live().is_some_and(|live| live.owned_hash == newer.owned_hash())
            })
            .await;
        let refused = bench.engine.apply(&older).await.unwrap_err();
        assert!(matches!(refused, Error::Superseded { .. }), "{refused:?}");
    }
}
