//! "Could not read" is not "gone".

use std::fs;

use slipway_app::ports::substrate::{Address, Error, HighWaterMark, Substrate};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::ids::ProvisionedResourceId;
use uuid::Uuid;

use crate::support::{Bench, address, mk_composite};

fn reason(report: CompositeReport) -> String {
    match report {
        CompositeReport::Unknown { reason } | CompositeReport::Foreign { reason } => reason,
        other => panic!("expected a doubt: {other:?}"),
    }
}

#[tokio::test]
async fn a_root_that_is_not_there_says_nothing_about_its_nodes() {
    let bench = Bench::new();
    let uid = bench.engine.identity().await.unwrap();
    assert_eq!(uid, fs::read_to_string(bench.root().join("substrate.uid")).unwrap());
    fs::rename(bench.root(), bench.root().with_extension("unmounted")).unwrap();
    assert!(reason(bench.report().await).contains("is not there"));
    assert!(matches!(bench.engine.identity().await, Err(Error::Failed(_))));
    let refused = bench.engine.apply(&mk_composite().rendered()).await;
    assert!(matches!(refused, Err(Error::Failed(_))), "{refused:?}");
    assert!(!bench.root().exists(), "an apply must not make a new root");
}

#[tokio::test]
async fn another_root_in_the_same_place_says_nothing_either() {
    let bench = Bench::new();
    let recorded = bench.engine.identity().await.unwrap();
    fs::rename(bench.root(), bench.root().with_extension("lost")).unwrap();
    let fresh = bench.another_engine();
    assert_ne!(fresh.identity().await.unwrap(), recorded);
    assert!(reason(bench.report().await).contains("another directory is in use under this path"));

    // A restarted server opens the fresh root; only the recorded uid reveals it.
    let remembered = Address { substrate_uid: Some(recorded), ..address() };
    let reports = fresh.observe(&[remembered.clone(), address()]).await;
    assert!(reason(reports[0].clone()).contains("another directory is in use under this path"));
    assert!(matches!(reports[1], CompositeReport::Absent));
    let refused = fresh.delete(&remembered, "some-uid").await;
    assert!(matches!(refused, Err(Error::Failed(_))), "{refused:?}");
}

#[tokio::test]
async fn what_cannot_be_read_is_unknown_and_one_bad_directory_spoils_no_other() {
    let bench = Bench::new();
    bench.apply_until_ready().await;
    let named = |name: &str| Address { name: name.to_owned(), ..address() };
    let namespace = bench.directory().parent().unwrap().to_owned();
    fs::create_dir(namespace.join("empty")).unwrap();
    fs::create_dir(namespace.join("broken")).unwrap();
    fs::write(namespace.join("broken/composite.json"), "{").unwrap();
    fs::write(namespace.join("file"), "").unwrap();
    let other = Address {
        provisioned_resource_id: ProvisionedResourceId::new(Uuid::from_u128(99)),
        ..address()
    };
    let batch = [
        named("empty"),
        named("broken"),
        named("file"),
        named("../x"),
        other,
        named("never"),
        address(),
    ];
    let reports = bench.engine.observe(&batch).await;
    for (index, part) in [
        (0, "no composite.json"),
        (1, "not JSON"),
        (2, "cannot be read"),
        (3, "no name for a node directory"),
        (4, "belongs to the provisioned resource"),
    ] {
        let reason = reason(reports[index].clone());
        assert!(reason.contains(part), "{reason}");
    }
    assert!(matches!(reports[5], CompositeReport::Absent), "{:?}", reports[5]);
    assert!(reports[6].live().unwrap().ready);
}

#[tokio::test]
async fn a_failure_marker_and_the_status_of_the_agent_are_reported() {
    let bench = Bench::new();
    bench.apply_until_ready().await;
    fs::write(bench.directory().join("failure.json"), r#"{"message": "no disk"}"#).unwrap();
    fs::write(bench.directory().join("status.json"), r#"{"state": "active"}"#).unwrap();
    let live = bench.live().await;
    assert_eq!(live.failure.as_deref(), Some("no disk"));
    assert_eq!(live.evidence["agent"]["state"], "active");
}

#[tokio::test]
async fn a_root_of_another_installation_is_refused_when_it_is_opened() {
    let bench = Bench::new();
    let refused = bench.try_engine_of(2).unwrap_err();
    let Error::Conflict(text) = &refused else { panic!("{refused:?}") };
    for part in ["belongs to the installation", "--substrate-root"] {
        assert!(text.contains(part), "{text}");
    }
    bench.apply_until_ready().await;
    bench.another_engine();
}

#[tokio::test]
async fn the_mark_is_the_installations_own_and_needs_the_root() {
    let bench = Bench::new();
    let read = |value| Ok(HighWaterMark { value, fresh: true });
    assert_eq!(bench.engine.high_water_mark_read(false).await, read(None));
    bench.engine.high_water_mark_write(7).await.unwrap();
    bench.engine.high_water_mark_write(3).await.unwrap();
    assert_eq!(bench.another_engine().high_water_mark_read(false).await, read(Some(7)));
    fs::rename(bench.root(), bench.root().with_extension("unmounted")).unwrap();
    assert!(
        matches!(bench.engine.high_water_mark_read(false).await, Err(Error::Failed(_))),
        "not a first start"
    );
    assert!(bench.engine.high_water_mark_write(8).await.is_err());
    assert!(!bench.root().exists());
}
