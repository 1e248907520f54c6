//! Workspaces on a store: groups are brought to their counts, gates refuse at every door, of
//! many who scale down at once only as many pass as may, and a teardown goes in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::access::role::Role;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::deletion::leak::{Found, ObjectRef};
use slipway_core::ids::{GroupId, InstallationId, NodeId, ProvisionedResourceId, WorkspaceId};
use slipway_core::topology::declared::Declared;
use slipway_core::topology::server::Server;
use slipway_core::{ErrorKind, Phase};
use slipway_render::{NodeSettings, RenderedComposite};
use uuid::Uuid;

use super::files::client::{caller, context};
use super::world::{BLUEPRINT, PROJECT, World};
use crate::access::authorise::Caller;
use crate::broker::converge::Engines;
use crate::broker::{delete, retry};
use crate::deletion::request::DeleteOptions;
use crate::deletion::restore::{self, RestoreOptions};
use crate::deletion::{request, run as deletions};
use crate::permits::Permits;
use crate::ports::Stores;
use crate::ports::store::Page;
use crate::ports::substrate::{
    Address, Error as SubstrateError, InventoryPage, InventoryRequest, Substrate,
};
use crate::topology::{apply, run, servers, workspaces};
use crate::{Context, Error};

mod rollouts;

/// Lists what our rows have, unless a test says otherwise.
#[derive(Debug)]
struct Provider {
    stores: Stores,
    script: Mutex<Script>,
}

#[derive(Debug, Default, Clone)]
struct Script {
    fails: bool,
    hides: BTreeSet<ProvisionedResourceId>,
    has_a_stray: bool,
}

#[async_trait]
impl Substrate for Provider {
    fn engine(&self) -> Engine {
        Engine::Local
    }

    async fn identity(&self) -> Result<String, SubstrateError> {
        Ok("root-1".to_owned())
    }

    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        let unknown = CompositeReport::Unknown { reason: "it only lists".to_owned() };
        vec![unknown; addresses.len()]
    }

    async fn apply(&self, _: &RenderedComposite) -> Result<CompositeReport, SubstrateError> {
        Err(SubstrateError::Failed("it only lists".to_owned()))
    }

    async fn delete(&self, _: &Address, _: &str) -> Result<(), SubstrateError> {
        Err(SubstrateError::Failed("it only lists".to_owned()))
    }

    async fn group_inventory(
        &self,
        group: GroupId,
        _: &InventoryRequest,
    ) -> Result<InventoryPage, SubstrateError> {
        let script = self.script.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if script.fails {
            return Err(SubstrateError::Failed("the provider is away".to_owned()));
        }
        let rows = self.stores.topology.server_attempts(group).await;
        let rows = rows.map_err(|error| SubstrateError::Failed(error.to_string()))?;
        let there = rows.iter().filter(|row| {
            row.known.phase != Phase::Pending
                && row.known.phase != Phase::Deleted
                && !script.hides.contains(&row.known.id)
        });
        let found = |name: String, id: Option<ProvisionedResourceId>| Found {
            object_ref: ObjectRef { namespace: "p".to_owned(), name },
            uid: "uid".to_owned(),
            provisioned_resource_id: id,
            claim_token: None,
            group: Some(group),
            evidence: Value::Null,
        };
        let mut page = InventoryPage::default();
        page.found.extend(there.map(|row| found(row.known.server.clone(), Some(row.known.id))));
        if script.has_a_stray {
            page.found.push(found("stray".to_owned(), None));
        }
        Ok(page)
    }
}

/// A client of workspaces, whose servers become Ready as it drives them.
#[derive(Debug)]
struct Client {
    world: World,
    context: Context,
    /// Who may do everything.
    caller: Caller,
    provider: Arc<Provider>,
    /// By their attempts.
    nodes: Mutex<BTreeMap<ProvisionedResourceId, NodeId>>,
}

impl Client {
    async fn new(stores: Stores) -> Self {
        let world = World::new(stores.clone()).await;
        let provider = Arc::new(Provider { stores: stores.clone(), script: Mutex::default() });
        let engines = Engines::new(NodeSettings {
            installation: InstallationId::new(Uuid::from_u128(9)),
            public_url: "http://127.0.0.1:1".to_owned(),
            heartbeat_interval_ms: 1_000,
            orphan_after_ms: 1_000,
            node_image: None,
            authorities: None,
        });
        engines.serve(world.partition, "local", Arc::clone(&provider) as _);
        let context = context(stores);
        context.inventories.connect(engines, Duration::from_secs(5));
        Self { world, context, caller: caller(), provider, nodes: Mutex::default() }
    }

    fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.provider.script.lock().unwrap_or_else(PoisonError::into_inner));
    }

    async fn apply(&self, name: &str, declared: &Value) -> Result<WorkspaceId, Error> {
        let declared: Declared = serde_json::from_value(declared.clone()).expect("a spec");
        let no_plan = (None, None);
        apply::apply(&self.context, &self.caller, PROJECT, name, &declared, no_plan).await?;
        workspaces::find(&self.context, &self.caller, name).await
    }

    async fn pass(&self) {
        let runner = run::Runner::new(self.context.clone(), Arc::new(Permits::default()));
        runner.pass().await.expect("a pass over workspaces");
    }

    async fn deletions(&self) {
        let runner = deletions::Runner::new(self.context.clone(), Arc::new(Permits::default()));
        runner.pass().await.expect("a pass over deletions");
    }

    async fn servers(&self, id: WorkspaceId) -> Vec<Server> {
        let observed = self.context.stores.topology.workspace_observed(id).await;
        observed.expect("a read").map(|found| found.servers).unwrap_or_default()
    }

    async fn names(&self, id: WorkspaceId) -> Vec<String> {
        let mut names: Vec<String> =
            self.servers(id).await.into_iter().map(|server| server.name).collect();
        names.sort();
        names
    }

    /// Brings every server that waits for nothing now to Ready.
    async fn bring_up(&self, id: WorkspaceId) {
        let mut free = Vec::new();
        for server in self.servers(id).await {
            let snapshot = self.world.snapshot(server.attempt_id).await;
            if server.phase == Phase::Pending && snapshot.waits_for.is_empty() {
                free.push(server);
            }
        }
        for server in free {
            self.enrol(server.attempt_id).await;
        }
    }

    /// Brings a new attempt to Ready.
    async fn enrol(&self, attempt: ProvisionedResourceId) {
        self.world.drive(attempt, Phase::Enrolling).await;
        let token = self.world.token(attempt).await;
        let node = self.world.enrol(token, self.world.public_key()).await.expect("a node");
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).insert(attempt, node);
        self.world.drive(attempt, Phase::Ready).await;
    }

    /// Takes an attempt that leaves to its end.
    async fn release(&self, attempt: ProvisionedResourceId) {
        let node = self.nodes.lock().unwrap_or_else(PoisonError::into_inner).remove(&attempt);
        if let Some(node) = node {
            self.world.leave(node).await.expect("it leaves");
        }
        self.world.drive(attempt, Phase::Deleted).await;
    }

    /// Everything declared, and Ready.
    async fn ready(&self, id: WorkspaceId) {
        for _ in 0..4 {
            self.pass().await;
            self.bring_up(id).await;
        }
        let servers = self.servers(id).await;
        assert!(servers.iter().all(Server::is_counted), "{servers:?}");
    }

    /// Lets every server that leaves go to its end.
    async fn take_away(&self, id: WorkspaceId) -> Vec<String> {
        let mut gone = Vec::new();
        for server in self.servers(id).await.into_iter().filter(|server| !server.stays()) {
            self.release(server.attempt_id).await;
            gone.push(server.name);
        }
        gone.sort();
        gone
    }

    async fn scale_down(&self, workspace: &str, server: &str) -> Result<(), Error> {
        self.scale_down_as(&self.caller, workspace, server).await
    }

    async fn scale_down_as(
        &self,
        caller: &Caller,
        workspace: &str,
        server: &str,
    ) -> Result<(), Error> {
        let found = servers::find(&self.context, caller, workspace, server).await?;
        let of = (found.group.id, found.server.id);
        let options = DeleteOptions::default();
        servers::scale_down(&self.context, caller, of, options).await.map(drop)
    }

    async fn delete_server(
        &self,
        workspace: &str,
        server: &str,
        break_glass: bool,
    ) -> Result<(), Error> {
        let found = servers::find(&self.context, &self.caller, workspace, server).await?;
        let of = (found.group.id, found.server.id);
        let reason = Some("it burns");
        let options = DeleteOptions { reason, break_glass, ..DeleteOptions::default() };
        servers::delete(&self.context, &self.caller, of, options).await.map(drop)
    }
}

fn group(prefix: &str, role: &str, count: u32, (min, max): (u32, u32), on: &[&str]) -> Value {
    json!({
        "name": prefix, "role": role, "count": count, "blueprint": BLUEPRINT,
        "depends_on": on,
        "scale": {
            "min": min, "max": max, "template": { "hostname_pattern": format!("{prefix}-{{n}}") },
        },
    })
}

fn workers(prefix: &str, count: u32, bounds: (u32, u32)) -> Value {
    json!({ "groups": [group(prefix, "Worker", count, bounds, &[])] })
}

fn kind(outcome: Result<(), Error>) -> Option<ErrorKind> {
    outcome.err().map(|error| error.refusal.kind)
}

/// The sequential half.
pub async fn topology(stores: Stores) {
    let client = Client::new(stores).await;
    Box::pin(groups_are_brought_to_their_counts(&client)).await;
    Box::pin(servers_come_in_the_order_of_the_graph_and_go_in_the_other(&client)).await;
    Box::pin(the_minimum_is_kept_and_the_maximum_not_passed(&client)).await;
    Box::pin(the_provider_is_asked_first(&client)).await;
    Box::pin(the_verbs_of_resources_leave_servers_alone(&client)).await;
    Box::pin(a_quorum_is_kept_unless_the_glass_is_broken(&client)).await;
    Box::pin(a_lock_goes_before_its_servers(&client)).await;
    Box::pin(the_new_one_is_waited_for(&client)).await;
    Box::pin(the_last_load_balancer_stays(&client)).await;
    Box::pin(a_teardown_is_paused_resumed_and_cancelled(&client)).await;
    Box::pin(a_workspace_comes_back_with_its_groups(&client)).await;
    Box::pin(a_key_of_another_project_sees_nothing(&client)).await;
    Box::pin(rollouts::conformance(&client)).await;
}

/// The race half.
pub async fn topology_races(stores: Stores, rounds: u32) {
    let client = Arc::new(Client::new(stores).await);
    for round in 0..rounds {
        Box::pin(many_scale_down_at_once(&client, round)).await;
        Box::pin(many_scale_down_by_number(&client, round)).await;
        Box::pin(many_declare_at_once(&client, round)).await;
    }
}

async fn groups_are_brought_to_their_counts(client: &Client) {
    let id = client.apply("counts", &workers("ca", 2, (1, 4))).await.expect("a workspace");
    client.ready(id).await;
    assert_eq!(client.names(id).await, ["ca-1", "ca-2"]);
    // Twice the same changes nothing, nor does a pass.
    client.apply("counts", &workers("ca", 2, (1, 4))).await.expect("the same");
    client.pass().await;
    assert_eq!(client.names(id).await.len(), 2);
    // A minimum above the count is brought about; a lower maximum deletes nothing.
    client.apply("counts", &workers("ca", 2, (3, 4))).await.expect("a higher minimum");
    client.ready(id).await;
    assert_eq!(client.names(id).await.len(), 3);
    client.apply("counts", &workers("ca", 3, (0, 1))).await.expect("a lower maximum");
    client.pass().await;
    assert_eq!(client.names(id).await.len(), 3);
    // Fewer: the newest goes, and its name is free for the next.
    client.apply("counts", &workers("ca", 2, (0, 4))).await.expect("fewer");
    client.pass().await;
    assert_eq!(client.take_away(id).await, ["ca-3"]);
    client.pass().await;
    assert_eq!(client.names(id).await, ["ca-1", "ca-2"]);
    // Another workspace with the same names is refused, one with the same prefix is counted
    // by itself.
    let same = client.apply("other", &workers("ca", 1, (0, 2))).await;
    assert_eq!(same.expect_err("a refusal").refusal.kind, ErrorKind::HostnamePatternTaken);
    let eu = client.apply("eu", &workers("ca-eu", 1, (1, 2))).await.expect("the same prefix");
    client.ready(eu).await;
    assert_eq!(kind(client.scale_down("eu", "ca-eu-1").await), Some(ErrorKind::ScaleMinViolation));
    // A live server keeps its role.
    let mut other = workers("ca", 2, (0, 4));
    other["groups"][0]["role"] = json!("LoadBalancer");
    let refused = client.apply("counts", &other).await.expect_err("a refusal").refusal;
    assert_eq!(refused.kind, ErrorKind::RoleImmutable);
    // A group that is not declared any more goes.
    client.apply("counts", &json!({ "groups": [] })).await.expect("an empty workspace");
    client.pass().await;
    assert_eq!(client.take_away(id).await, ["ca-1", "ca-2"]);
    client.pass().await;
    let groups = client.context.stores.topology.workspace_groups(&[id]).await.expect("groups");
    assert!(groups.is_empty(), "{groups:?}");
}

async fn servers_come_in_the_order_of_the_graph_and_go_in_the_other(client: &Client) {
    let declared = json!({ "groups": [
        group("oc", "ControlPlane", 2, (1, 3), &[]),
        group("ol", "LoadBalancer", 1, (0, 1), &["oc"]),
        group("ow", "Worker", 2, (0, 3), &["ol"]),
    ] });
    let id = client.apply("order", &declared).await.expect("a workspace");
    let mut came: Vec<Vec<String>> = Vec::new();
    for _ in 0..4 {
        client.pass().await;
        let before: BTreeSet<String> = ready(client, id).await;
        client.bring_up(id).await;
        let now = ready(client, id).await;
        came.push(now.difference(&before).cloned().collect());
    }
    let came: Vec<Vec<String>> = came.into_iter().filter(|names| !names.is_empty()).collect();
    assert_eq!(came, [vec!["oc-1", "oc-2"], vec!["ol-1"], vec!["ow-1", "ow-2"]]);
    // One that waits says for what.
    client
        .apply("order", &{
            let mut more = declared.clone();
            more["groups"][1]["count"] = json!(1);
            more["groups"][2]["count"] = json!(3);
            more
        })
        .await
        .expect("a worker more");
    let deletion = {
        let confirm = workspaces::teardown(
            &client.context,
            &client.caller,
            id,
            "another name",
            DeleteOptions::default(),
        );
        assert_eq!(confirm.await.expect_err("a refusal").refusal.kind, ErrorKind::InvalidInput);
        let options = DeleteOptions { reason: Some("over"), ..DeleteOptions::default() };
        workspaces::teardown(&client.context, &client.caller, id, "order", options).await
    };
    let deletion = deletion.expect("a teardown");
    let mut went: Vec<Vec<String>> = Vec::new();
    for _ in 0..8 {
        client.deletions().await;
        // A second pass before anything is gone begins nothing more.
        client.deletions().await;
        went.push(client.take_away(id).await);
    }
    client.deletions().await;
    let went: Vec<Vec<String>> = went.into_iter().filter(|names| !names.is_empty()).collect();
    assert_eq!(went, [vec!["ow-1", "ow-2"], vec!["ol-1"], vec!["oc-2"], vec!["oc-1"]]);
    let record = client.context.stores.deletion.deletion_fetch(deletion).await.expect("a read");
    let record = record.expect("the record");
    assert_eq!(record.state.as_str(), "done");
    let members = client.context.stores.topology.teardown_members(deletion).await.expect("names");
    assert_eq!(members.len(), 5, "each server has a deletion of its own: {members:?}");
}

async fn ready(client: &Client, id: WorkspaceId) -> BTreeSet<String> {
    let servers = client.servers(id).await.into_iter();
    servers.filter(Server::is_counted).map(|server| server.name).collect()
}

async fn the_minimum_is_kept_and_the_maximum_not_passed(client: &Client) {
    let id = client.apply("bounds", &workers("mb", 3, (2, 4))).await.expect("a workspace");
    client.ready(id).await;
    client.scale_down("bounds", "mb-1").await.expect("one can be missed");
    // A second request is answered by the same deletion.
    client.scale_down("bounds", "mb-1").await.expect("it goes already");
    let refused = client.scale_down("bounds", "mb-2").await.expect_err("a refusal").refusal;
    assert_eq!(refused.kind, ErrorKind::ScaleMinViolation);
    let details = refused.details.expect("numbers");
    assert_eq!((&details["remaining"], &details["min"]), (&json!(1), &json!(2)));
    client.pass().await;
    assert_eq!(client.take_away(id).await, ["mb-1"]);
    client.pass().await;
    assert_eq!(client.names(id).await, ["mb-2", "mb-3"], "nobody wants it back");
    let group = servers::find_group(&client.context, &client.caller, "bounds", "mb").await;
    let group = group.expect("the group");
    let wanted = servers::scale_up(&client.context, &client.caller, group.id, 2).await;
    assert_eq!(wanted.expect("two more"), 4);
    let more = servers::scale_up(&client.context, &client.caller, group.id, 1)
        .await
        .expect_err("a refusal");
    assert_eq!(more.refusal.kind, ErrorKind::ScaleMaxViolation);
    client.ready(id).await;
    assert_eq!(client.names(id).await, ["mb-1", "mb-2", "mb-3", "mb-4"]);
    // A mark wins over age; by number, the gate ends it and names what went before.
    let marked = servers::find(&client.context, &client.caller, "bounds", "mb-2").await;
    let marked = marked.expect("a server");
    servers::mark(&client.context, &client.caller, &marked, true).await.expect("a mark");
    let options = DeleteOptions::default();
    let outcome = servers::scale_down_by(&client.context, &client.caller, &group, 3, options)
        .await
        .expect_err("a refusal");
    assert_eq!(outcome.refusal.kind, ErrorKind::ScaleMinViolation);
    let leaving = outcome.refusal.details.expect("details")["leaving"].clone();
    assert_eq!(leaving, json!(["mb-2", "mb-4"]));
    // An admin deletes one as it is, and the minimum brings another.
    client.take_away(id).await;
    client.delete_server("bounds", "mb-1", false).await.expect("an admin");
    client.take_away(id).await;
    client.ready(id).await;
    assert_eq!(client.names(id).await.len(), 2);
}

async fn the_provider_is_asked_first(client: &Client) {
    let id = client.apply("listed", &workers("pl", 2, (0, 2))).await.expect("a workspace");
    client.ready(id).await;
    client.script(|script| script.fails = true);
    let unavailable = client.scale_down("listed", "pl-1").await;
    assert_eq!(kind(unavailable), Some(ErrorKind::InventoryUnavailable));
    let fewer = client.apply("listed", &workers("pl", 1, (0, 2))).await.expect_err("a refusal");
    assert_eq!(fewer.refusal.kind, ErrorKind::InventoryUnavailable);
    client.script(|script| *script = Script { has_a_stray: true, ..Script::default() });
    let stray = client.scale_down("listed", "pl-1").await.expect_err("a refusal").refusal;
    assert_eq!(stray.kind, ErrorKind::InventoryMismatch);
    assert_eq!(stray.details.expect("lists")["unknown"], json!(["stray"]));
    let hidden = client.servers(id).await[1].attempt_id;
    client.script(|script| *script = Script { hides: [hidden].into(), ..Script::default() });
    let missing = client.scale_down("listed", "pl-1").await.expect_err("a refusal").refusal;
    assert_eq!(missing.kind, ErrorKind::InventoryMismatch);
    assert_eq!(missing.details.expect("lists")["missing"], json!(["pl-2"]));
    client.script(|script| *script = Script::default());
    client.scale_down("listed", "pl-1").await.expect("they agree again");
}

async fn the_verbs_of_resources_leave_servers_alone(client: &Client) {
    let id = client.apply("owned", &workers("ow-n", 1, (0, 1))).await.expect("a workspace");
    client.ready(id).await;
    let server = client.servers(id).await[0].clone();
    let options = DeleteOptions::default();
    let deleted = delete::delete(&client.context, &client.caller, server.id, options).await;
    assert_eq!(deleted.expect_err("a refusal").refusal.kind, ErrorKind::OwnedByWorkspace);
    let retried =
        retry::retry(&client.context, &client.caller, server.id, "again", &Default::default())
            .await;
    assert_eq!(retried.expect_err("a refusal").refusal.kind, ErrorKind::OwnedByWorkspace);
    let cascade = DeleteOptions { cascade: true, ..DeleteOptions::default() };
    let project = request::delete::<slipway_core::catalog::project::Project>(
        &client.context,
        &client.caller,
        PROJECT,
        cascade,
    )
    .await;
    assert_eq!(project.expect_err("a refusal").refusal.kind, ErrorKind::OwnedByWorkspace);
    let cluster = request::delete::<slipway_core::placement::cluster::Cluster>(
        &client.context,
        &client.caller,
        "local",
        DeleteOptions::default(),
    );
    let refused = cluster.await.expect_err("a refusal").refusal.kind;
    assert!([ErrorKind::OwnedByWorkspace, ErrorKind::ClusterInUse].contains(&refused));
    let refused = workspaces::delete(&client.context, &client.caller, id, DeleteOptions::default());
    assert_eq!(refused.await.expect_err("a refusal").refusal.kind, ErrorKind::WorkspaceNotEmpty);
    // What was scaled down does not come back beside its group.
    client.scale_down("owned", "ow-n-1").await.expect("it can be missed");
    client.take_away(id).await;
    let page = Page { after: None, limit: 500 };
    let filter = crate::deletion::port::DeletionFilter {
        name: Some("ow-n-1".to_owned()),
        ..Default::default()
    };
    let found = client.context.stores.deletion.deletion_list(&filter, page).await.expect("a list");
    let deletion = found.items.first().expect("its deletion").id;
    let ask = RestoreOptions { redeclare: true, ..RestoreOptions::default() };
    let restored = restore::restore(&client.context, &client.caller, deletion, ask).await;
    assert_eq!(restored.expect_err("a refusal").refusal.kind, ErrorKind::OwnedByWorkspace);
}

async fn a_quorum_is_kept_unless_the_glass_is_broken(client: &Client) {
    let planes = json!({ "groups": [group("qc", "ControlPlane", 2, (1, 3), &[])] });
    let id = client.apply("quorum", &planes).await.expect("a workspace");
    client.ready(id).await;
    let down = client.scale_down("quorum", "qc-1").await;
    assert_eq!(kind(down), Some(ErrorKind::ControlPlaneImmutable));
    let fewer = json!({ "groups": [group("qc", "ControlPlane", 1, (1, 3), &[])] });
    let applied = client.apply("quorum", &fewer).await.expect_err("a refusal");
    assert_eq!(applied.refusal.kind, ErrorKind::ControlPlaneImmutable);
    let quorum = client.delete_server("quorum", "qc-1", false).await;
    assert_eq!(kind(quorum), Some(ErrorKind::QuorumViolation));
    let operator = Caller { role: Role::Operator, ..caller() };
    let found = servers::find(&client.context, &operator, "quorum", "qc-1").await;
    let found = found.expect("a server");
    let options = DeleteOptions { reason: Some("it burns"), ..DeleteOptions::default() };
    let of = (found.group.id, found.server.id);
    let forbidden = servers::delete(&client.context, &operator, of, options).await;
    assert_eq!(forbidden.expect_err("a refusal").refusal.kind, ErrorKind::Forbidden);
    client.script(|script| script.fails = true);
    client.delete_server("quorum", "qc-1", true).await.expect("the glass is broken");
    client.script(|script| *script = Script::default());
    // The quorum counts those that are declared, so a lost one is made anew.
    client.take_away(id).await;
    client.ready(id).await;
    assert_eq!(client.names(id).await, ["qc-1", "qc-2"]);
    // Control planes of two groups have one quorum.
    let two = json!({ "groups": [
        group("qc", "ControlPlane", 2, (1, 3), &[]),
        group("qd", "ControlPlane", 1, (1, 3), &[]),
    ] });
    client.apply("quorum", &two).await.expect("one more");
    client.ready(id).await;
    client.delete_server("quorum", "qd-1", false).await.expect("2 of 3 are left");
    let second = client.delete_server("quorum", "qc-1", false).await;
    assert_eq!(kind(second), Some(ErrorKind::QuorumViolation));
}

/// What a lock protects needs two declarations to go, and no grace outlives what the gates found.
async fn a_lock_goes_before_its_servers(client: &Client) {
    let locked = |count: u32, lock: bool| {
        let mut declared = workers("lk", count, (0, 3));
        declared["groups"][0]["delete_lock"] = json!(lock);
        declared
    };
    let id = client.apply("locked", &locked(2, true)).await.expect("a workspace");
    client.ready(id).await;
    let at_once = client.apply("locked", &locked(1, false)).await.expect_err("a refusal");
    assert_eq!(at_once.refusal.kind, ErrorKind::DeleteLocked);
    client.apply("locked", &locked(2, false)).await.expect("unlocked first");
    let found = servers::find(&client.context, &client.caller, "locked", "lk-1").await;
    let found = found.expect("a server");
    let later = DeleteOptions { grace: Some(Duration::from_secs(3_600)), ..Default::default() };
    let of = (found.group.id, found.server.id);
    servers::scale_down(&client.context, &client.caller, of, later).await.expect("it goes");
    let phase = client.world.snapshot(found.server.attempt_id).await.attempt.phase();
    assert_eq!(phase, Phase::Deregistering, "now");
}

/// Nobody takes the server that works while the one that is to stay still comes.
async fn the_new_one_is_waited_for(client: &Client) {
    let id = client.apply("waits", &workers("nw", 1, (0, 3))).await.expect("a workspace");
    client.ready(id).await;
    let found = servers::find(&client.context, &client.caller, "waits", "nw-1").await;
    let found = found.expect("a server");
    servers::mark(&client.context, &client.caller, &found, true).await.expect("a mark");
    let (group, options) = (&found.group, DeleteOptions::default());
    servers::scale_up(&client.context, &client.caller, group.id, 1).await.expect("one more");
    client.pass().await;
    let early = servers::scale_down_by(&client.context, &client.caller, group, 1, options).await;
    assert_eq!(early.expect_err("a refusal").refusal.kind, ErrorKind::ReplacementUnderWay);
    client.ready(id).await;
    let gone = servers::scale_down_by(&client.context, &client.caller, group, 1, options).await;
    assert_eq!(gone.expect("it works now"), ["nw-1"]);
}

async fn the_last_load_balancer_stays(client: &Client) {
    let declared = json!({ "groups": [
        group("ll", "LoadBalancer", 1, (0, 2), &[]),
        group("lw", "Worker", 1, (0, 2), &[]),
    ] });
    let id = client.apply("balanced", &declared).await.expect("a workspace");
    client.ready(id).await;
    let last = client.scale_down("balanced", "ll-1").await;
    assert_eq!(kind(last), Some(ErrorKind::LastLoadBalancer));
    client.scale_down("balanced", "lw-1").await.expect("a worker");
    client.take_away(id).await;
    client.scale_down("balanced", "ll-1").await.expect("nobody is behind it");
}

async fn a_teardown_is_paused_resumed_and_cancelled(client: &Client) {
    let declared = json!({ "groups": [
        group("tc", "ControlPlane", 1, (1, 1), &[]),
        group("tw", "Worker", 2, (1, 2), &["tc"]),
    ] });
    let id = client.apply("stopped", &declared).await.expect("a workspace");
    client.ready(id).await;
    let options = DeleteOptions::default();
    let deletion = workspaces::teardown(&client.context, &client.caller, id, "stopped", options);
    deletion.await.expect("a teardown");
    workspaces::pause(&client.context, &client.caller, id, None).await.expect("a pause");
    client.deletions().await;
    assert!(client.servers(id).await.iter().all(Server::stays), "it is paused");
    workspaces::resume(&client.context, &client.caller, id, None).await.expect("it goes on");
    client.deletions().await;
    assert_eq!(client.take_away(id).await, ["tw-1", "tw-2"]);
    let left = workspaces::cancel(&client.context, &client.caller, id, Some("enough")).await;
    let left = left.expect("a cancellation");
    let mut gone = left.gone.clone();
    gone.sort();
    assert_eq!(gone, ["tw-1", "tw-2"]);
    assert_eq!(left.staying, ["tc-1"]);
    // It stays as it is until somebody lets it go on.
    client.deletions().await;
    client.pass().await;
    assert_eq!(client.names(id).await, ["tc-1"]);
    workspaces::resume(&client.context, &client.caller, id, None).await.expect("it goes on");
    client.ready(id).await;
    assert_eq!(client.names(id).await, ["tc-1", "tw-1", "tw-2"]);
}

async fn a_workspace_comes_back_with_its_groups(client: &Client) {
    let id = client.apply("back", &workers("bk", 1, (1, 2))).await.expect("a workspace");
    client.ready(id).await;
    let options = DeleteOptions::default();
    let deletion = workspaces::teardown(&client.context, &client.caller, id, "back", options);
    let deletion = deletion.await.expect("a teardown");
    client.deletions().await;
    assert_eq!(client.take_away(id).await, ["bk-1"]);
    client.deletions().await;
    assert!(workspaces::find(&client.context, &client.caller, "back").await.is_err());
    let ask = RestoreOptions::default();
    restore::restore(&client.context, &client.caller, deletion, ask).await.expect("it comes back");
    client.ready(id).await;
    assert_eq!(client.names(id).await, ["bk-1"], "made anew");
}

async fn a_key_of_another_project_sees_nothing(client: &Client) {
    let other = client.world.create_project("elsewhere").await.expect("a project");
    let stranger = Caller { project: Some(other), role: Role::Admin, ..caller() };
    let found = workspaces::find(&client.context, &stranger, "back").await;
    assert_eq!(found.expect_err("a refusal").refusal.kind, ErrorKind::WorkspaceNotFound);
    let declared: Declared =
        serde_json::from_value(workers("st", 1, (0, 1))).expect("a declaration");
    let no_plan = (None, None);
    let applied =
        apply::apply(&client.context, &stranger, PROJECT, "stranger", &declared, no_plan).await;
    assert_eq!(applied.expect_err("a refusal").refusal.kind, ErrorKind::ProjectNotFound);
}

/// Twenty ask for different servers of a group with one more than its minimum: one passes.
async fn many_scale_down_at_once(client: &Arc<Client>, round: u32) {
    const SERVERS: u32 = 20;
    let name = format!("race{round}");
    let declared = workers(&format!("{name}-w"), SERVERS, (SERVERS - 1, SERVERS));
    let id = client.apply(&name, &declared).await.expect("a workspace");
    client.ready(id).await;
    let asked = client.servers(id).await.into_iter().map(|server| {
        let (client, name) = (Arc::clone(client), name.clone());
        tokio::spawn(async move { client.scale_down(&name, &server.name).await })
    });
    let asked: Vec<_> = asked.collect();
    let mut passed = 0;
    for one in asked {
        match kind(one.await.expect("no panic")) {
            None => passed += 1,
            Some(refused) => assert_eq!(refused, ErrorKind::ScaleMinViolation),
        }
    }
    assert_eq!(passed, 1, "of {SERVERS} at once");
    let staying = client.servers(id).await.iter().filter(|server| server.stays()).count();
    assert_eq!(staying, usize::try_from(SERVERS - 1).expect("few"));
}

/// The same by a number: nobody is answered that a server goes which somebody else took.
async fn many_scale_down_by_number(client: &Arc<Client>, round: u32) {
    const SERVERS: u32 = 6;
    let name = format!("number{round}");
    let declared = workers(&format!("{name}-w"), SERVERS, (SERVERS - 2, SERVERS));
    let id = client.apply(&name, &declared).await.expect("a workspace");
    client.ready(id).await;
    let group =
        servers::find_group(&client.context, &client.caller, &name, &format!("{name}-w")).await;
    let group = Arc::new(group.expect("the group"));
    let asked: Vec<_> = (0..20)
        .map(|_| {
            let (client, group) = (Arc::clone(client), Arc::clone(&group));
            tokio::spawn(async move {
                let (by, options) = (1, DeleteOptions::default());
                servers::scale_down_by(&client.context, &client.caller, &group, by, options).await
            })
        })
        .collect();
    let mut gone = Vec::new();
    for one in asked {
        match one.await.expect("no panic") {
            Ok(names) => gone.extend(names),
            Err(error) => assert_eq!(error.refusal.kind, ErrorKind::ScaleMinViolation),
        }
    }
    gone.sort();
    let leaving: Vec<String> = client
        .servers(id)
        .await
        .into_iter()
        .filter(|server| !server.stays())
        .map(|server| server.name)
        .collect();
    assert_eq!(gone, leaving, "each answer names another one");
    assert_eq!(gone.len(), 2);
}

/// Several loops and a person at once never make more servers than are wanted.
async fn many_declare_at_once(client: &Arc<Client>, round: u32) {
    let name = format!("declare{round}");
    let declared = workers(&format!("{name}-w"), 5, (0, 6));
    let id = client.apply(&name, &declared).await.expect("a workspace");
    let passes = (0..4).map(|_| {
        let client = Arc::clone(client);
        tokio::spawn(async move { client.pass().await })
    });
    let passes: Vec<_> = passes.collect();
    let group =
        servers::find_group(&client.context, &client.caller, &name, &format!("{name}-w")).await;
    let group = group.expect("the group").id;
    servers::scale_up(&client.context, &client.caller, group, 1).await.expect("one more");
    for pass in passes {
        pass.await.expect("no panic");
    }
    client.pass().await;
    assert_eq!(client.names(id).await.len(), 6);
}
