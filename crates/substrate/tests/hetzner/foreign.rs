//! What belongs to somebody else, and tokens of another project.

use slipway_app::ports::substrate::{Error, Substrate};
use slipway_core::broker::observation::CompositeReport;

use super::support::{Bench, OURS};

#[tokio::test]
async fn a_token_of_another_project_proves_no_absence() {
    let bench = Bench::new().await;
    let live = bench.up(&bench.composite()).await;
    std::fs::write(bench.token_file(), "token-other").unwrap();
    let seen = bench.report().await;
    assert!(matches!(seen, CompositeReport::Unknown { .. }), "{seen:?}");
    bench.engine.delete(&bench.address(10), &live.uid).await.unwrap_err();
    bench.apply(&bench.composite()).await.unwrap_err();
    let refused = bench.engine.verify(Some(&bench.uid)).await.unwrap_err();
    assert!(refused.to_string().contains("leads to another project"), "{refused}");
    assert!(bench.provider.servers("other").is_empty());
    assert!(bench.provider.placement_groups("other").is_empty(), "nothing is made there");

    std::fs::write(bench.token_file(), "token-unknown").unwrap();
    let seen = bench.report().await;
    let CompositeReport::Unknown { reason } = seen else { panic!("{seen:?}") };
    assert!(reason.contains("unauthorized") && !reason.contains("token-unknown"), "{reason}");

    std::fs::write(bench.token_file(), "token-main").unwrap();
    bench
        .until("there again", async || match bench.report().await {
            CompositeReport::Present(_) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    bench.down(&live.uid).await;
    bench.assert_fits();
}

#[tokio::test]
async fn a_project_belongs_to_one_installation() {
    let bench = Bench::new().await;
    let stranger = bench.engine_of(2);
    let refused = stranger.verify(None).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    let seen = stranger.observe(&[bench.address(10)]).await.remove(0);
    assert!(matches!(seen, CompositeReport::Unknown { .. }), "{seen:?}");
    // Another replica of ours finds the same.
    assert_eq!(bench.engine_of(OURS).verify(None).await.unwrap(), bench.uid);
    assert_eq!(bench.requests("POST /placement_groups"), 1);
}

#[tokio::test]
async fn replicas_that_start_together_agree() {
    let bench = Bench::new().await;
    bench.provider.remove_placement_group("main", "slipway-identity");
    let (one, two) = (bench.engine_of(OURS), bench.engine_of(OURS));
    let (one, two) = tokio::join!(one.verify(None), two.verify(None));
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(bench.provider.placement_groups("main").len(), 1);
}

/// Without the object that stands for the project nothing counts as gone.
#[tokio::test]
async fn a_project_that_lost_its_identity_proves_nothing() {
    let bench = Bench::new().await;
    bench.provider.remove_placement_group("main", "slipway-identity");
    let seen = bench.another_engine().await.observe(&[bench.address(10)]).await.remove(0);
    let CompositeReport::Unknown { reason } = seen else { panic!("{seen:?}") };
    assert!(reason.contains("hcloud placement-group create"), "{reason}");
    let refused = bench.engine.verify(Some(&bench.uid)).await.unwrap_err();
    assert!(refused.to_string().contains(&bench.uid), "{refused}");
}

#[tokio::test]
async fn a_server_of_somebody_else_is_left_alone() {
    let bench = Bench::new().await;
    let live = bench.up(&bench.composite()).await;
    let id = bench.server().id;
    bench.provider.change_server("main", id, |server| {
        let installation = "00000000-0000-0000-0000-000000000009".to_owned();
        server.labels.insert("slipway.dev/installation".to_owned(), installation);
    });
    let engine = bench.another_engine().await;
    let seen = engine.observe(&[bench.address(10)]).await.remove(0);
    assert!(matches!(seen, CompositeReport::Foreign { .. }), "{seen:?}");
    let refused = engine.delete(&bench.address(10), &live.uid).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    let refused = engine.apply(&bench.composite().rendered()).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    assert_eq!(bench.server().status, "running");
}
