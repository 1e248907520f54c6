//! The catalog entries that a project on a cluster needs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, json};
use slipway_app::broker::declare::{self, Declare};
use slipway_app::catalog::{blueprints, clouds, credentials, projects};
use slipway_app::permits::Permits;
use slipway_app::placement::clusters;
use slipway_app::placement::reconcile::{PassLease, PlacementReconciler};
use slipway_core::catalog::blueprint::SubmittedContent;
use slipway_core::ids::{CloudCredentialId, ClusterId, ResourceId};
use slipway_core::precondition::Expected;
use slipway_render::shared::{PlacementSettings, Subject};

use crate::world::World;

pub(super) const BLUEPRINT: &str = "demo-server";
const PROVIDER: &str = "hetzner";

/// Publishes what all projects use; returns their credential.
pub(super) async fn catalog(world: &World, install_definitions: bool) -> CloudCredentialId {
    let (context, caller) = (&world.context, &world.caller);
    clouds::create(context, caller, "cloud", PROVIDER, Map::new(), None).await.unwrap();
    let input = credentials::CreateCredential {
        cloud: "cloud".to_owned(),
        name: "main".to_owned(),
        kv_mount: None,
        kv_path: None,
    };
    let credential = credentials::create(context, caller, input, None).await.unwrap();
    let input = blueprints::CreateBlueprint {
        slug: BLUEPRINT.to_owned(),
        display_name: "Server".to_owned(),
        description: String::new(),
        engine: "crossplane".to_owned(),
        protected: false,
    };
    blueprints::create(context, caller, input, None).await.unwrap();
    let given = SubmittedContent {
        version: "v1".to_owned(),
        xrd: include_str!("../../../../../deploy/demo/catalog/demo-server/xrd.yaml").to_owned(),
        composition: include_str!(
            "../../../../../deploy/demo/catalog/demo-server/composition.yaml"
        )
        .to_owned(),
        parameters: Some(json!({ "parameters": [] })),
        injection_strategy: "cloud-init-user-data".to_owned(),
        // Nodes have their own tests.
        mesh_role: Some("standalone".to_owned()),
        provider_kinds: vec![PROVIDER.to_owned()],
        install_definitions,
        surge: false,
    };
    blueprints::publish(context, caller, BLUEPRINT, given, None).await.unwrap();
    credential
}

/// A cluster with a project of the same name on it.
pub(super) async fn assignment(
    world: &World,
    name: &str,
    credential: CloudCredentialId,
) -> ClusterId {
    let (context, caller) = (&world.context, &world.caller);
    let access = format!("kubeconfig/{name}");
    let wanted = clusters::ClusterRequest {
        name,
        engine: "crossplane",
        namespace_prefix: None,
        region: None,
        access: Some(&access),
        protected: false,
    };
    let cluster = clusters::create(context, caller, wanted, None).await.unwrap();
    let labels = BTreeMap::new();
    let draft = projects::Draft { name, labels, mesh_cidr: None, protected: false };
    projects::create(context, caller, draft, None).await.unwrap();
    credentials::assign(context, caller, name, credential).await.unwrap();
    clusters::assign(context, caller, name, Some(name), None, Expected::Any).await.unwrap();
    cluster
}

pub(super) async fn declare(world: &World, project: &str) -> ResourceId {
    let input = Declare {
        project: Some(project.to_owned()),
        handle: "web".to_owned(),
        blueprint: BLUEPRINT.to_owned(),
        ..Declare::default()
    };
    declare::declare(&world.context, &world.caller, input).await.unwrap()
}

/// A placement reconciler that may make everything it can make.
pub(super) fn placement(world: &World, permits: &Arc<Permits>) -> PlacementReconciler {
    let settings = PlacementSettings {
        installation: world.node_settings.installation,
        subjects: vec![Subject::Group("platform".to_owned())],
        role: PlacementSettings::DEFAULT_ROLE.to_owned(),
        quota: BTreeMap::from([("count/pods".to_owned(), 5)]),
        secret_store: PlacementSettings::DEFAULT_SECRET_STORE.to_owned(),
    };
    PlacementReconciler::new(world.context.clone(), settings, Arc::clone(permits), "test")
        .with_create_lands_within(Duration::from_millis(50))
}

/// The lease of a pass that never ends.
#[derive(Debug)]
pub(super) struct NoEnd;

impl PassLease for NoEnd {
    fn deadline(&self) -> Duration {
        Duration::from_secs(600)
    }

    fn allows_action(&self) -> bool {
        true
    }
}
