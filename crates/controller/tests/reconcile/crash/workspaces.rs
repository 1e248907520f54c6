//! The scenarios of workspaces: applied, scaled down, a server replaced, torn down. Whatever
//! strikes, servers come after what they depend on and go before it ([`order`](super::order)
//! checks each action), none is made twice, and nothing is left of those that went.
//!
//! Several servers go on at once, so the points of each are named by it, and the first passage
//! of every name is struck.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use slipway_app::deletion::request::DeleteOptions;
use slipway_app::deletion::run as deletions;
use slipway_app::nodes::node;
use slipway_app::permits::Permits;
use slipway_app::ports::store::Page;
use slipway_app::topology::servers::{self, Found};
use slipway_app::topology::{apply, run, workspaces};
use slipway_core::ErrorKind;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::deletion::record::DeletionState;
use slipway_core::ids::{DeletionId, ResourceId, WorkspaceId};
use slipway_core::time::Timestamp;
use slipway_core::topology::declared::Declared;
use slipway_core::topology::next::Observed;
use slipway_core::topology::server::Server;

use super::plane::Plane;
use super::raw::Raw;
use super::scenarios::{CAME, CAME_AND_WENT, Filling, Scenario, filling};

/// Seldom enough that servers which have settled take little time of the others, and the
/// longest delay before a failed action is tried again.
const SWEEP: Duration = Duration::from_millis(300);
const IDLE_LEAST: Duration = Duration::from_millis(2);
const IDLE_MOST: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(45);

/// Two alike, and one on its own that waits for both of them.
fn paired(handle: &str) -> Value {
    json!({
        "groups": [group(handle, ("cp", "ControlPlane"), 2, (1, 2), &[])],
        "servers": [single(handle, ("lb", "LoadBalancer"), &["cp"])],
    })
}

/// Three roles, each of which depends on the one before.
fn layered(handle: &str) -> Value {
    json!({
        "groups": [
            group(handle, ("cp", "ControlPlane"), 1, (1, 1), &[]),
            group(handle, ("worker", "Worker"), 2, (1, 2), &[&format!("{handle}-lb")]),
        ],
        "servers": [single(handle, ("lb", "LoadBalancer"), &["cp"])],
    })
}

fn single(handle: &str, (name, role): (&str, &str), on: &[&str]) -> Value {
    let name = format!("{handle}-{name}");
    json!({ "name": name, "role": role, "blueprint": "local-node", "depends_on": on })
}

fn workers(handle: &str, count: u32, bounds: (u32, u32)) -> Value {
    json!({ "groups": [group(handle, ("worker", "Worker"), count, bounds, &[])] })
}

fn group(
    handle: &str,
    (name, role): (&str, &str),
    count: u32,
    (min, max): (u32, u32),
    on: &[&str],
) -> Value {
    json!({
        "name": name, "role": role, "count": count, "blueprint": "local-node", "depends_on": on,
        "scale": {
            "min": min, "max": max,
            "template": { "hostname_pattern": format!("{handle}-{name}-{{n}}") },
        },
    })
}

/// See [`Scenario::passes`].
pub(super) fn passes(scenario: Scenario) -> &'static [&'static str] {
    match scenario {
        Scenario::ServerScaledDown => &[
            "commit:Ready→Deregistering+resource.delete+server.scale_down of worker-1/before",
            "commit:Ready→Deregistering+resource.delete+server.scale_down of worker-1/after",
            "commit:node.drain of worker-1/after",
            "commit:node.deregister of worker-1/before",
            "action:delete of worker-1/before",
            "action:delete of worker-1/after",
            "commit:Deprovisioning→Deleted+deletion.done of worker-1/after",
        ],
        Scenario::GroupShrunk => &[
            "commit:workspace.update/before",
            "commit:workspace.update/after",
            "commit:Ready→Deregistering+resource.delete+server.scale_down of worker-2/before",
            "commit:Ready→Deregistering+resource.delete+server.scale_down of worker-2/after",
            "action:delete of worker-2/before",
            "commit:Deprovisioning→Deleted+deletion.done of worker-2/after",
        ],
        Scenario::ServerReplaced => &[
            "commit:Ready→Deregistering+resource.replace of worker-1/before",
            "commit:Ready→Deregistering+resource.replace of worker-1/after",
            "action:delete of worker-1/after",
            "commit:Deprovisioning→Deleted+deletion.done+provisioned_resource.follow of worker-1/after",
            "action:create of worker-1#2/before",
            "commit:Enrolling→Ready of worker-1#2/after",
        ],
        Scenario::ControlPlaneSurged => &[
            "commit:resource.replace of cp-1#2/before",
            "commit:resource.replace of cp-1#2/after",
            "action:create of cp-1#2/after",
            "commit:Enrolling→Ready+Ready→Deregistering+deletion.start of cp-1#2/before",
            "commit:Enrolling→Ready+Ready→Deregistering+deletion.start of cp-1#2/after",
            "action:delete of cp-1/before",
            "commit:Deprovisioning→Deleted+deletion.done of cp-1/after",
        ],
        Scenario::WorkspaceTornDown => &[
            "commit:workspace/before",
            "commit:workspace/after",
            "commit:Ready→Deregistering+resource.delete of worker-1/before",
            "commit:Ready→Deregistering+resource.delete of worker-2/after",
            "action:delete of worker-1/after",
            "commit:Deprovisioning→Deleted+deletion.done of worker-1/after",
            "commit:Deprovisioning→Deleted+deletion.done of worker-2/after",
            "commit:Ready→Deregistering+resource.delete of lb/before",
            "action:delete of lb/before",
            "commit:Deprovisioning→Deleted+deletion.done of lb/before",
            "commit:Ready→Deregistering+resource.delete of cp-1/after",
            "commit:node.deregister of cp-1/before",
            "action:delete of cp-1/after",
            "commit:Deprovisioning→Deleted+deletion.done of cp-1/after",
            "commit:deletion.done/before",
            "commit:deletion.done/after",
        ],
        Scenario::WorkspaceApplied => &[
            "commit:workspace.create/before",
            "commit:workspace.create/after",
            "commit:resource.declare of cp-1/after",
            "commit:resource.declare of cp-2/before",
            "commit:resource.declare of lb/after",
            "action:create of cp-1/before",
            "action:create of cp-2/after",
            "commit:Enrolling→Ready of cp-1/before",
            "commit:Enrolling→Ready of cp-2/after",
            "commit:wake/before",
            "commit:wake/after",
            "action:create of lb/after",
            "commit:Enrolling→Ready of lb/after",
        ],
        _ => &[],
    }
}

/// From nothing to Ready, in the order of dependencies.
pub(super) async fn applied(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    plane.with_servers(handle);
    plane.arm();
    let id = plane.apply_workspace(handle, &paired(handle)).await;
    plane.until_ready(id, 3).await;
    plane.disarm();
    let mut raw = Raw::open(&plane.world.url).await;
    let lives = plane.lives(&mut raw, id).await;
    for earlier in ["cp-1", "cp-2"] {
        let (ready, begun) = (lives[earlier].at("Ready"), lives["lb"].begun());
        if ready > begun {
            let text = format!("lb began at {begun:?}, {earlier} was Ready at {ready:?}");
            plane.journal.violation(text);
        }
    }
    let servers = ["cp-1", "cp-2", "lb"];
    plane.check_workspace(&mut raw, (id, handle), &servers, &["workspace.create"]).await;
    plane.fillings(&mut raw, id, &[CAME; 3]).await
}

/// One server, by the verb. The group wants one less, and nobody makes it again.
pub(super) async fn scaled_down(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    let id = plane.prepared(handle, &workers(handle, 2, (1, 2)), 2).await;
    let Found { group, server, .. } = plane.server_found(handle, "worker-1").await;
    plane.arm();
    let world = plane.world;
    let reason = Some("less to do");
    let deletion = plane
        .request(async |life| {
            let options = DeleteOptions { reason, ..DeleteOptions::default() };
            let of = (group.id, server.id);
            servers::scale_down(&life.context, &world.caller, of, options).await
        })
        .await
        .unwrap();
    plane.until_ready(id, 1).await;
    plane.check_deletion(server.id, deletion, None).await;
    let mut raw = Raw::open(&plane.world.url).await;
    plane
        .check_workspace(
            &mut raw,
            (id, handle),
            &["worker-2"],
            &["server.scale_down", "workspace.create"],
        )
        .await;
    plane.fillings(&mut raw, id, &[CAME_AND_WENT, CAME]).await
}

/// One server, by a declaration that wants one less: the loop takes the newest.
pub(super) async fn shrunk(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    let id = plane.prepared(handle, &workers(handle, 2, (1, 2)), 2).await;
    let server = plane.server_found(handle, "worker-2").await.server;
    plane.arm();
    plane.apply_workspace(handle, &workers(handle, 1, (1, 2))).await;
    plane.until_ready(id, 1).await;
    let deletion = plane.world.get(server.id).await.resource.deletion_id.unwrap();
    plane.check_deletion(server.id, deletion, None).await;
    let mut raw = Raw::open(&plane.world.url).await;
    let verbs = ["server.scale_down", "workspace.create", "workspace.update"];
    plane.check_workspace(&mut raw, (id, handle), &["worker-1"], &verbs).await;
    plane.fillings(&mut raw, id, &[CAME, CAME_AND_WENT]).await
}

/// A worker gets another machine after its old one is gone.
pub(super) async fn replaced(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    let id = plane.prepared(handle, &workers(handle, 1, (0, 1)), 1).await;
    let found = plane.server_found(handle, "worker-1").await;
    plane.arm();
    // Asked again after its answer was lost, it is leaving.
    plane.replace_server(&found, false, ErrorKind::Leaving).await;
    plane.until_followed(id, &found.server).await;
    let mut raw = Raw::open(&plane.world.url).await;
    plane.check_workspace(&mut raw, (id, handle), &["worker-1"], &["workspace.create"]).await;
    let mut fillings = plane.fillings(&mut raw, id, &[CAME_AND_WENT, CAME]).await;
    fillings[0] = Filling { order: "resource.replace", followed: true, ..fillings[0] };
    fillings
}

/// A control plane gets another machine before its old one goes.
pub(super) async fn surged(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    let declared = json!({ "groups": [group(handle, ("cp", "ControlPlane"), 1, (1, 1), &[])] });
    let id = plane.prepared(handle, &declared, 1).await;
    let found = plane.server_found(handle, "cp-1").await;
    plane.arm();
    plane.replace_server(&found, true, ErrorKind::SurgeUnderWay).await;
    plane.until_followed(id, &found.server).await;
    let mut raw = Raw::open(&plane.world.url).await;
    plane.check_workspace(&mut raw, (id, handle), &["cp-1"], &["workspace.create"]).await;
    let mut fillings = plane.fillings(&mut raw, id, &[CAME_AND_WENT, CAME]).await;
    fillings[0] = Filling { order: "resource.replace", followed: true, ..fillings[0] };
    fillings[1].beside = true;
    fillings
}

/// Everything, the other way round, and in the end nothing is there.
pub(super) async fn torn_down(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    let id = plane.prepared(handle, &layered(handle), 4).await;
    let before = plane.observed(id).await.unwrap();
    plane.arm();
    let world = plane.world;
    let deletion = plane
        .request(async |life| {
            let options = DeleteOptions { reason: Some("over"), ..DeleteOptions::default() };
            workspaces::teardown(&life.context, &world.caller, id, handle, options).await
        })
        .await
        .unwrap();
    plane.drive(id, "the workspace to be gone", |observed| observed.is_none()).await;
    let mut raw = Raw::open(&world.url).await;
    let fillings = plane.fillings(&mut raw, id, &[CAME_AND_WENT; 4]).await;
    let found = world.context.stores.deletion.deletion_fetch(deletion).await.unwrap().unwrap();
    assert_eq!(found.state, DeletionState::Done);
    for server in &before.servers {
        let own = world.get(server.id).await.resource.deletion_id.unwrap();
        plane.check_deletion(server.id, own, Some(deletion)).await;
    }
    for group in &before.groups {
        assert_eq!(world.substrate.count_of(group.id), 0, "{} is empty", group.spec.name);
    }
    let lives = plane.lives(&mut raw, id).await;
    for (earlier, later) in [("worker-1", "lb"), ("worker-2", "lb"), ("lb", "cp-1")] {
        let (gone, begun) = (lives[earlier].at("Deleted"), lives[later].at("Deregistering"));
        if gone > begun {
            let text = format!("{later} began to go at {begun:?}, {earlier} was gone at {gone:?}");
            plane.journal.violation(text);
        }
    }
    let again = workspaces::find(&world.context, &world.caller, handle).await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::WorkspaceNotFound);
    plane.check_verbs(&mut raw, id, &["workspace.create", "workspace.delete"]).await;
    fillings
}

/// The phases of an attempt, and when it entered each.
struct Lived(Vec<(String, Timestamp)>);

impl Lived {
    fn at(&self, phase: &str) -> Timestamp {
        self.0.iter().find(|(to, _)| to == phase).unwrap().1
    }

    /// When it was Pending no more.
    fn begun(&self) -> Timestamp {
        self.0.iter().find(|(to, _)| to != Phase::Pending.as_str()).unwrap().1
    }
}

impl Plane<'_> {
    fn with_servers(&mut self, handle: &str) {
        self.prove_when_told();
        self.sweep_every(SWEEP);
        self.journal.name_servers(&format!("{handle}-"));
    }

    /// A workspace with all of its servers Ready.
    async fn prepared(&mut self, handle: &str, declared: &Value, servers: usize) -> WorkspaceId {
        self.with_servers(handle);
        let id = self.apply_workspace(handle, declared).await;
        self.until_ready(id, servers).await;
        id
    }

    /// Whoever lost the answer applies again.
    async fn apply_workspace(&mut self, name: &str, declared: &Value) -> WorkspaceId {
        let world = self.world;
        let declared: Declared = serde_json::from_value(declared.clone()).unwrap();
        self.request(async |life| {
            let (context, caller) = (&life.context, &world.caller);
            apply::apply(context, caller, "default", name, &declared, (None, None)).await?;
            workspaces::find(context, caller, name).await
        })
        .await
        .unwrap()
    }

    async fn server_found(&self, workspace: &str, server: &str) -> Found {
        let (context, caller) = (&self.world.context, &self.world.caller);
        servers::find(context, caller, workspace, &format!("{workspace}-{server}")).await.unwrap()
    }

    async fn replace_server(&mut self, found: &Found, surge: bool, again: ErrorKind) {
        let world = self.world;
        let replaced = self
            .request(async |life| {
                let reason = Some("it is slow");
                servers::replace(&life.context, &world.caller, found, surge, reason).await
            })
            .await;
        assert!(replaced.is_ok() || replaced == Err(again), "{replaced:?}");
    }

    async fn observed(&self, id: WorkspaceId) -> Option<Observed> {
        self.world.context.stores.topology.workspace_observed(id).await.unwrap()
    }

    async fn until_ready(&mut self, id: WorkspaceId, servers: usize) {
        let is_there = |observed: Option<&Observed>| {
            observed.is_some_and(|found| {
                found.servers.len() == servers && found.servers.iter().all(Server::is_counted)
            })
        };
        self.drive(id, "its servers to be Ready", is_there).await;
    }

    /// Another attempt of this server is Ready, and the one before is gone.
    async fn until_followed(&mut self, id: WorkspaceId, before: &Server) {
        let is_there = |observed: Option<&Observed>| {
            observed.is_some_and(|found| {
                let servers = &found.servers;
                servers.iter().all(|server| {
                    let follows = server.attempt_id != before.attempt_id;
                    server.is_counted() && !server.surging && follows
                })
            })
        };
        self.drive(id, "another attempt to be Ready", is_there).await;
    }

    /// Runs all loops and the agents of the servers until the workspace satisfies the condition;
    /// it has none once it is deleted.
    async fn drive(
        &mut self,
        id: WorkspaceId,
        what: &str,
        wanted: impl Fn(Option<&Observed>) -> bool,
    ) {
        let started = Instant::now();
        let mut idle = IDLE_LEAST;
        loop {
            let observed = self.observed(id).await;
            if wanted(observed.as_ref()) {
                return;
            }
            assert!(started.elapsed() < TIMEOUT, "waited for {what}, but it is {observed:#?}");
            let leaves = observed.as_ref().is_some_and(|one| one.workspace.deletion_id.is_some());
            let mut moved = self.run_loops(leaves).await;
            for server in observed.iter().flat_map(|found| &found.servers) {
                let acts = matches!(server.phase, Phase::Enrolling | Phase::Deregistering);
                if acts || server.surging {
                    moved |= self.run_agents(server.id).await;
                }
            }
            idle = if moved { IDLE_LEAST } else { IDLE_MOST.min(idle * 2) };
            if !moved {
                // Nothing can be claimed before it is due.
                tokio::time::sleep(idle).await;
            }
        }
    }

    /// A pass of the loop that is about a workspace, and passes of that over resources as long
    /// as it finds any; returns whether there was anything to do. No gate refuses what the
    /// loops do here.
    async fn run_loops(&mut self, leaves: bool) -> bool {
        let journal = Arc::clone(&self.journal);
        let ran = self
            .request(async |life| {
                let (context, permits) = (life.context.clone(), Arc::<Permits>::default());
                let (advanced, refused) = if leaves {
                    let passed = deletions::Runner::new(context, permits).pass().await?;
                    (passed.advanced, passed.refused)
                } else {
                    let passed = run::Runner::new(context, permits).pass().await?;
                    (passed.advanced + passed.woken, passed.refused)
                };
                if refused > 0 {
                    journal.violation(format!("a loop was refused {refused} times"));
                }
                let mut worked = advanced > 0;
                while life.round().await {
                    worked = true;
                }
                Ok(worked)
            })
            .await;
        match ran {
            Ok(moved) => moved,
            // A machine that is too busy; the loops come again.
            Err(ErrorKind::Unavailable) => false,
            Err(kind) => panic!("a loop fails: {kind}"),
        }
    }

    /// The agents inside the objects of a server: one enrols as soon as it is waited for, and
    /// acknowledges a drain.
    async fn run_agents(&mut self, server: ResourceId) -> bool {
        let seen = self.world.get(server).await;
        let mut acted = false;
        for one in [Some(&seen), seen.other.as_deref()].into_iter().flatten() {
            acted |= self.run_agent(one).await;
        }
        acted
    }

    async fn run_agent(&mut self, seen: &ResourceSnapshot) -> bool {
        let world = self.world;
        let node = seen.node.as_ref().filter(|node| node.is_registered());
        match (seen.attempt.phase(), node) {
            (Phase::Enrolling, None) => {
                let number = u8::try_from(seen.attempt.attempt()).unwrap();
                let token = world.token(seen.attempt.xr_name());
                self.enrol_with(seen.resource.id, number, &token).await;
                true
            }
            (Phase::Deregistering, Some(node)) => {
                let Some(drain) = &node.drain else { return false };
                let said = self
                    .request(async |life| {
                        node::acknowledge_drain(&life.context, node.id, drain.id).await
                    })
                    .await;
                assert!(matches!(said, Ok(()) | Err(ErrorKind::NodeNotFound)), "{said:?}");
                true
            }
            _ => false,
        }
    }

    /// The phases of each server that was ever declared, by its short name.
    async fn lives(&self, raw: &mut Raw, id: WorkspaceId) -> BTreeMap<String, Lived> {
        let mut lives = BTreeMap::new();
        for (_, attempt) in raw.servers(id).await {
            let page = Page { after: None, limit: 100 };
            let history = self.world.context.stores.broker.history_list(attempt, page).await;
            // The newest comes first.
            let lines = history.unwrap().into_iter().rev();
            let phases = lines.map(|line| (line.to, line.at)).collect();
            let name = self.journal.server(attempt.as_uuid()).unwrap();
            lives.insert(name, Lived(phases));
        }
        lives
    }

    /// Every attempt of every server that was ever declared, which are as many as are expected,
    /// each with its events. Those that went are proven gone twice.
    async fn fillings(
        &mut self,
        raw: &mut Raw,
        id: WorkspaceId,
        expected: &[&'static [&'static str]],
    ) -> Vec<Filling> {
        // What becomes of a proof, other scenarios show.
        self.disarm();
        let made = raw.servers(id).await;
        assert_eq!(made.len(), expected.len(), "no server is made twice: {made:?}");
        let mut fillings = Vec::new();
        for ((resource, attempt), events) in made.into_iter().zip(expected) {
            let gone = filling(resource, attempt, "resource.delete");
            let phase = if *events == CAME { Phase::Ready } else { Phase::Deleted };
            if phase == Phase::Deleted {
                raw.age(attempt).await;
                self.until_proven(attempt).await;
            }
            fillings.push(Filling { phase, events, followed: false, ..gone });
        }
        fillings
    }

    /// The deletion of a server is done, and part of that of its workspace if it should be.
    async fn check_deletion(
        &self,
        server: ResourceId,
        deletion: DeletionId,
        parent: Option<DeletionId>,
    ) {
        let found = self.world.context.stores.deletion.deletion_fetch(deletion).await;
        let found = found.unwrap().unwrap();
        assert_eq!(found.target, server.into());
        assert_eq!((found.state, found.parent), (DeletionState::Done, parent), "{found:?}");
    }

    /// It wants the servers that it has, these, each is there once, and nothing is in the way.
    /// Nobody did anything to it but this.
    async fn check_workspace(
        &mut self,
        raw: &mut Raw,
        (id, handle): (WorkspaceId, &str),
        servers: &[&str],
        verbs: &[&str],
    ) {
        self.disarm();
        // A loop that still wanted something would begin it now.
        self.run_loops(false).await;
        let observed = self.observed(id).await.unwrap();
        let mut names: Vec<_> = observed.servers.iter().map(|one| one.name.as_str()).collect();
        names.sort_unstable();
        let expected: Vec<_> = servers.iter().map(|name| format!("{handle}-{name}")).collect();
        assert_eq!(names, expected);
        for group in &observed.groups {
            let own = observed.of(group).len();
            let there = self.world.substrate.count_of(group.id);
            let wanted = usize::try_from(group.spec.wanted).unwrap();
            assert_eq!((own, there), (wanted, wanted), "of {}", group.spec.name);
        }
        let blockers = self.world.context.stores.topology.workspace_blockers(id).await.unwrap();
        assert!(blockers.is_empty(), "{blockers:?}");
        self.check_verbs(raw, id, verbs).await;
    }

    /// Each of these was done to the workspace once, and nothing else.
    async fn check_verbs(&self, raw: &mut Raw, id: WorkspaceId, expected: &[&str]) {
        let audited = raw.audit(id.as_uuid()).await;
        let mut verbs: Vec<_> = audited.into_iter().map(|entry| entry.verb).collect();
        verbs.sort();
        assert_eq!(verbs, expected);
    }
}
