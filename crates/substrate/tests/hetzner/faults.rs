//! Answers that are lost, requests that arrive late, and a provider that fails.

use std::time::Duration;

use serde_json::json;
use slipway_app::ports::substrate::{Error, Substrate};
use slipway_core::broker::observation::CompositeReport;
use slipway_standin::hetzner::Fault;

use super::support::{Bench, token};

/// The create was carried out: the next apply finds the server by its name and adopts it.
#[tokio::test]
async fn a_create_whose_answer_is_lost_makes_one_server() {
    let bench = Bench::new().await;
    bench.provider.order("POST", "/servers", 1, Fault::LoseAnswer);
    let lost = bench.apply(&bench.composite()).await.unwrap_err();
    assert!(matches!(lost, Error::Unanswered(_)), "{lost:?}");
    let live = bench.up(&bench.composite()).await;
    assert_eq!(live.uid, bench.server().id.to_string());
    assert_eq!(bench.requests("POST /servers"), 2);
    bench.assert_fits();
}

/// Nobody knows the id of such a server, and it is not taken for absent.
#[tokio::test]
async fn a_server_that_nobody_heard_of_is_no_absence() {
    let bench = Bench::new().await;
    bench.provider.order("POST", "/servers", 1, Fault::LoseAnswer);
    bench.apply(&bench.composite()).await.unwrap_err();
    let seen = bench.another_engine().await.observe(&[bench.address(10)]).await.remove(0);
    assert!(matches!(seen, CompositeReport::Present(_)), "{seen:?}");
    // Also if somebody renamed it, or took our labels away.
    let id = bench.server().id;
    bench.provider.change_server("main", id, |server| server.name = "renamed".to_owned());
    let seen = bench.another_engine().await.observe(&[bench.address(10)]).await.remove(0);
    assert!(matches!(seen, CompositeReport::Present(_)), "{seen:?}");
    bench.provider.change_server("main", id, |server| {
        server.name = bench.address(10).name;
        server.labels.clear();
    });
    let seen = bench.another_engine().await.observe(&[bench.address(10)]).await.remove(0);
    assert!(matches!(seen, CompositeReport::Foreign { .. }), "{seen:?}");
}

#[tokio::test]
async fn a_create_that_lands_late_is_refused_or_replaced() {
    let bench = Bench::new().await;
    // It lands after the newer claim made the server.
    bench.provider.order("POST", "/servers", 1, Fault::Delay(Duration::from_millis(300)));
    let rendered = bench.composite().rendered();
    let late = tokio::time::timeout(Duration::from_millis(100), bench.engine.apply(&rendered));
    late.await.unwrap_err();
    let mut newer = bench.composite();
    newer.claim_token = 4;
    newer.injection = token(21);
    let live = bench.up(&newer).await;
    bench
        .until("carried out late", async || match bench.provider.delayed() {
            0 => Ok(()),
            some => Err(format!("{some} requests are held back")),
        })
        .await;
    assert_eq!(bench.server().id.to_string(), live.uid);
    bench.assert_fits();
}

#[tokio::test]
async fn a_provider_that_fails_proves_nothing() {
    let bench = Bench::new().await;
    let failing = Fault::Answer(500, "server_error".to_owned());
    bench.provider.order("GET", "/servers", 1, failing);
    let seen = bench.report().await;
    assert!(matches!(seen, CompositeReport::Unknown { .. }), "{seen:?}");
    // Nothing answers to name and label, but the project can no longer be told.
    bench.provider.order("GET", "/placement_groups", 1, Fault::Drop);
    let seen = bench.report().await;
    assert!(matches!(seen, CompositeReport::Unknown { .. }), "{seen:?}");
    assert!(matches!(bench.report().await, CompositeReport::Absent));
}

#[tokio::test]
async fn a_deletion_survives_lost_answers_and_protection() {
    let bench = Bench::new().await;
    let composite = bench.composite().with("delete_protection", json!(true));
    let live = bench.up(&composite).await;
    let address = bench.address(10);
    bench.provider.order("DELETE", "/servers", 1, Fault::LoseAnswer);
    let lost = bench.engine.delete(&address, &live.uid).await.unwrap_err();
    assert!(matches!(lost, Error::Unanswered(_)), "{lost:?}");
    bench.down(&live.uid).await;
    bench.engine.delete(&address, &live.uid).await.unwrap();
    assert!(bench.servers().is_empty());
    bench.assert_fits();
}

#[tokio::test]
async fn what_the_provider_could_not_make_has_failed() {
    let bench = Bench::new().await;
    bench.provider.fail_create("the host burned");
    bench.apply(&bench.composite()).await.unwrap();
    let failure = bench.until("failed", async || match bench.report().await {
        CompositeReport::Present(live) => live.failure.clone().ok_or_else(|| format!("{live:?}")),
        other => Err(format!("{other:?}")),
    });
    let failure = failure.await;
    assert!(failure.contains("the host burned"), "{failure}");
    bench.assert_fits();
}
