//! A changed group on live servers: in place where that can be, otherwise by another machine.

use std::sync::Arc;

use serde_json::{Value, json};
use slipway_core::ErrorKind;
use slipway_core::ids::WorkspaceId;
use slipway_core::rollouts::record::{MemberState, Rollout, RolloutState};
use slipway_core::topology::declared::Declared;
use slipway_core::topology::rollout::Way;
use slipway_core::topology::server::Server;

use super::{Client, PROJECT, workers};
use crate::Error;
use crate::deletion::request::DeleteOptions;
use crate::permits::Permits;
use crate::ports::store::Page;
use crate::rollouts::port::RolloutFilter;
use crate::rollouts::run as rollouts;
use crate::topology::plan::{self, Plan};
use crate::topology::{apply, workspaces};

impl Client {
    async fn roll_out(&self) {
        let runner = rollouts::Runner::new(self.context.clone(), Arc::new(Permits::default()));
        runner.pass().await.expect("a pass over roll-outs");
    }

    /// Everything that a server needs to be what was declared last.
    async fn converge(&self, server: &Server) {
        let found = self.world.snapshot(server.attempt_id).await;
        if let Some(surge) = &found.resource.surge {
            self.enrol(surge.to).await;
            self.release(surge.from).await;
        } else if found.update_pending_since().is_some() {
            let claimed = self.world.claim_now(server.attempt_id).await;
            self.world.tick(claimed).await.expect("a tick");
        }
    }

    /// How many servers are in work after each pass, until the last roll-out has ended.
    async fn play(&self, id: WorkspaceId) -> Vec<usize> {
        let mut in_work = Vec::new();
        for _ in 0..12 {
            self.roll_out().await;
            let servers = self.servers(id).await;
            let mut busy = Vec::new();
            for server in servers {
                let found = self.world.snapshot(server.attempt_id).await;
                if found.resource.surge.is_some() || found.update_pending_since().is_some() {
                    busy.push(server);
                }
            }
            if !busy.is_empty() {
                in_work.push(busy.len());
            }
            for server in &busy {
                self.converge(server).await;
            }
        }
        in_work
    }

    async fn planned(&self, declared: &Value) -> Plan {
        let declared: Declared = serde_json::from_value(declared.clone()).expect("a spec");
        let planned = plan::plan(&self.context, &self.caller, PROJECT, "rolled", &declared).await;
        planned.expect("a read").expect("a plan")
    }

    async fn held_to(&self, declared: &Value, plan: &str) -> Result<(), Error> {
        let declared: Declared = serde_json::from_value(declared.clone()).expect("a spec");
        let held = (None, Some(plan));
        apply::apply(&self.context, &self.caller, PROJECT, "rolled", &declared, held).await
    }

    async fn rollouts(&self, id: WorkspaceId) -> Vec<Rollout> {
        let subject = Some(id.to_string());
        let filter = RolloutFilter { subject, ..RolloutFilter::default() };
        let page = Page { after: None, limit: 10 };
        let listed = self.context.stores.rollouts.rollout_list(&filter, page).await;
        listed.expect("a list").items
    }

    async fn states(&self, id: WorkspaceId) -> Vec<RolloutState> {
        self.rollouts(id).await.iter().map(|rollout| rollout.state).collect()
    }

    /// Members of the last roll-out that were found gone.
    async fn gone(&self, id: WorkspaceId) -> usize {
        let last = self.rollouts(id).await.last().expect("a roll-out").id;
        let page = Page { after: None, limit: 10 };
        let rollouts = &self.context.stores.rollouts;
        let gone = rollouts.rollout_members(last, Some(MemberState::Gone), page).await;
        gone.expect("the members").len()
    }

    async fn values(&self, id: WorkspaceId, name: &str) -> Vec<Value> {
        let mut values = Vec::new();
        for server in self.servers(id).await {
            let found = self.world.snapshot(server.attempt_id).await;
            values.push(found.attempt.parameter_values().as_map()[name].clone());
        }
        values
    }
}

fn with(parameters: &Value) -> Value {
    let mut declared = workers("rl", 3, (2, 3));
    declared["groups"][0]["parameters"] = parameters.clone();
    declared
}

fn ways(plan: &Plan) -> Vec<Option<Way>> {
    plan.servers.iter().map(|server| server.way).collect()
}

pub(super) async fn conformance(client: &Client) {
    let first = with(&json!({ "size": 1, "zone": 1 }));
    let id = client.apply("rolled", &first).await.expect("a workspace");
    client.ready(id).await;
    assert!(client.states(id).await.is_empty(), "nobody was there to change");

    // A plan names every server with what becomes of it, and an apply is held to it.
    let bigger = with(&json!({ "size": 2, "zone": 1 }));
    let planned = client.planned(&bigger).await;
    assert_eq!(ways(&planned), [Some(Way::InPlace); 3]);
    let elsewhere = client.planned(&with(&json!({ "size": 2, "zone": 2 }))).await;
    assert_eq!(ways(&elsewhere), [Some(Way::Surge); 3]);
    let mut fewer = bigger.clone();
    fewer["groups"][0]["count"] = json!(1);
    let below = client.planned(&fewer).await;
    let gone: Vec<_> = below.servers.iter().filter(|one| one.way.is_none()).collect();
    assert_eq!(gone.len(), 1, "the minimum is 2: {below:?}");
    assert!(gone.iter().all(|one| one.refusal.is_none()));
    let other = client.held_to(&bigger, &elsewhere.digest).await;
    assert_eq!(other.expect_err("a refusal").refusal.kind, ErrorKind::PlanStale);
    assert!(client.states(id).await.is_empty(), "plans write nothing");
    client.held_to(&first, &client.planned(&first).await.digest).await.expect("nothing differs");

    // In place: the canary, then the others.
    client.apply("rolled", &with(&json!({ "size": 2, "zone": 1 }))).await.expect("a change");
    assert_eq!(client.states(id).await, [RolloutState::Running]);
    let before = client.servers(id).await;
    assert_eq!(client.play(id).await, [1, 2]);
    assert_eq!(client.states(id).await, [RolloutState::Done]);
    assert_eq!(client.values(id, "size").await, [2, 2, 2]);
    let attempts =
        |servers: &[Server]| servers.iter().map(|one| one.attempt_id).collect::<Vec<_>>();
    assert_eq!(attempts(&client.servers(id).await), attempts(&before), "the same machines");

    // Only another machine can have another zone. A newer declaration takes over what the
    // one before it began.
    client.apply("rolled", &with(&json!({ "size": 2, "zone": 2 }))).await.expect("a change");
    client.roll_out().await;
    let surging = client.servers(id).await.iter().filter(|server| server.surging).count();
    assert_eq!(surging, 1, "the canary");
    client.apply("rolled", &with(&json!({ "size": 2, "zone": 3 }))).await.expect("a change");
    let states = client.states(id).await;
    assert_eq!(states, [RolloutState::Done, RolloutState::Aborted, RolloutState::Running]);
    assert_eq!(client.play(id).await, [1, 1, 2], "the canary once more, then the others");
    assert_eq!(client.values(id, "zone").await, [3, 3, 3]);
    assert!(client.servers(id).await.iter().all(Server::is_counted));
    assert_eq!(client.states(id).await.last(), Some(&RolloutState::Done));

    // A workspace that is paused or leaves changes nothing; its roll-out ends after it.
    client.apply("rolled", &with(&json!({ "size": 4, "zone": 3 }))).await.expect("a change");
    workspaces::pause(&client.context, &client.caller, id, None).await.expect("a pause");
    client.roll_out().await;
    assert_eq!(client.values(id, "size").await, [2, 2, 2]);
    workspaces::resume(&client.context, &client.caller, id, None).await.expect("it goes on");
    let options = DeleteOptions::default();
    let deletion = workspaces::teardown(&client.context, &client.caller, id, "rolled", options);
    deletion.await.expect("a teardown");
    client.roll_out().await;
    assert_eq!(client.values(id, "size").await, [2, 2, 2]);
    assert_eq!(client.states(id).await.last(), Some(&RolloutState::Running));
    client.deletions().await;
    client.take_away(id).await;
    client.deletions().await;
    for _ in 0..4 {
        client.roll_out().await;
    }
    assert_eq!(client.states(id).await.last(), Some(&RolloutState::Done));
    assert_eq!(client.gone(id).await, 3);
}
