//! Declarations: what is written, and what is refused.

use serde_json::json;
use slipway_core::ids::{NodeId, ResourceId, Revision};
use slipway_core::{ErrorKind, Phase};

use crate::broker::port::{DeclareKey, HistoryLine, ResourceFilter};
use crate::ports::store::{Error, Page};
use crate::testing::world::{BLUEPRINT, PROJECT, World, refused};

pub(super) async fn a_declaration_is_there_as_it_was_declared(world: &World) {
    let mark = world.mark().await;
    let handle = world.handle();
    let declared = world.declare(&handle).await.expect("a declaration");

    let snapshot = world.snapshot(declared.attempt).await;
    assert_eq!(snapshot.resource.id, declared.resource);
    assert_eq!(snapshot.resource.handle.as_str(), handle);
    assert_eq!(snapshot.resource.labels.as_map()["tier"], "ünïcode");
    assert_eq!(snapshot.resource.revision, Revision::FIRST);
    assert_eq!(snapshot.resource.deletion_id, None);
    assert_eq!(snapshot.attempt.phase(), Phase::Pending);
    assert_eq!(snapshot.attempt.attempt(), 1);
    assert_eq!(snapshot.attempt.revision(), Revision::FIRST);
    assert_eq!(snapshot.attempt.xr_name(), format!("pr-{}", declared.attempt));
    assert_eq!(snapshot.attempt.parameter_values().as_map()["size"], json!(3));
    assert_eq!(snapshot.blueprint.slug, BLUEPRINT);
    assert_eq!(snapshot.blueprint.parameter_schema.described().len(), 2);
    let placement = snapshot.placement.as_ref().expect("the project is placed");
    assert!(placement.is_ready());
    assert_eq!(placement.namespace, format!("slipway-{}", snapshot.resource.project_id));
    assert!(snapshot.token.is_none() && snapshot.node.is_none() && snapshot.deletion.is_none());
    assert!(snapshot.due_at.is_some(), "it waits for the loop");
    assert!(snapshot.now >= snapshot.attempt.created_at(), "times are the database's");

    let fetched = world.store.broker.resource_fetch(declared.resource).await.expect("a fetch");
    assert_eq!(fetched.map(|fetched| fetched.attempt), Some(snapshot.attempt));
    let history = world.history(declared.attempt).await;
    assert!(
        matches!(&history[..], [HistoryLine { from: None, to, .. }] if to == "Pending"),
        "{history:?}"
    );
    world.check(mark, declared, "a declaration").await;
}

pub(super) async fn what_is_missing_is_refused_by_name(world: &World) {
    let key = || world.declare_key("never");
    let named = |text: &str| Some(text.to_owned());
    let table = [
        (DeclareKey { project: "nowhere".to_owned(), ..key() }, ErrorKind::ProjectNotFound),
        (DeclareKey { blueprint: "nothing".to_owned(), ..key() }, ErrorKind::BlueprintNotFound),
        (DeclareKey { version: named("v0"), ..key() }, ErrorKind::BlueprintNotFound),
        (DeclareKey { credential: named("nobody"), ..key() }, ErrorKind::CredentialNotFound),
    ];
    for (key, kind) in table {
        assert_eq!(refused(world.declare_by(&key).await), kind, "{key:?}");
    }
    let filter = ResourceFilter { handle: named("never"), ..ResourceFilter::default() };
    let found = world.store.broker.resource_list(&filter, Page { after: None, limit: 10 }).await;
    assert!(found.expect("a list").is_empty(), "a refusal writes nothing");
}

pub(super) async fn references_go_by_name_or_id(world: &World) {
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let snapshot = world.snapshot(declared.attempt).await;
    let key = DeclareKey {
        project: snapshot.resource.project_id.to_string(),
        version: Some("v1".to_owned()),
        credential: Some(snapshot.attempt.cloud_credential_id().to_string()),
        ..world.declare_key(&world.handle())
    };
    let by_id = world.declare_by(&key).await.expect("a declaration by ids");
    let by_id = world.snapshot(by_id.attempt).await;
    assert_eq!(by_id.resource.project_id, snapshot.resource.project_id);
    assert_eq!(by_id.attempt.cloud_credential_id(), snapshot.attempt.cloud_credential_id());

    let key = DeclareKey {
        credential: Some("local".to_owned()),
        project: PROJECT.to_owned(),
        ..world.declare_key(&world.handle())
    };
    world.declare_by(&key).await.expect("a declaration by names");
}

pub(super) async fn a_taken_handle_is_refused_and_nothing_is_written(world: &World) {
    let mark = world.mark().await;
    let handle = world.handle();
    let declared = world.declare(&handle).await.expect("a declaration");
    let Err(Error::Refused(refusal)) = world.declare(&handle).await else {
        panic!("the handle is taken");
    };
    assert_eq!(refusal.kind, ErrorKind::HandleTaken);
    assert_eq!(refusal.details, Some(json!({ "resource_id": declared.resource })));
    world.check(mark, declared, "a taken handle").await;

    let nobody = world.store.broker.resource_fetch(ResourceId::new(world.uuid())).await;
    assert!(nobody.expect("a fetch").is_none());
    let nobody = world.store.nodes.node_fetch(NodeId::new(world.uuid())).await;
    assert!(nobody.expect("a fetch").is_none());
}
