//! Any sequence of what people, agents and loops do to Fleet, with agents that go offline,
//! crash before they report and fail, ends with every agent's cluster equal to the live desired
//! state. On the way an agent that asks is never told by absence to remove something, no live
//! stack is under a deleted generator, and nothing is purged that an agent may still need.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use slipway_core::ErrorKind;
use slipway_core::deletion::record::DeletionState;
use slipway_core::fleet::object::DeploymentObject;
use slipway_core::ids::{AgentId, DeletionId, GeneratorId, StackId, TemplateId};
use slipway_core::precondition::Expected;
use slipway_core::rollouts::record::{RolloutState, Strategy};
use slipway_core::subject::SubjectKind;

use super::client::{Client, admin, content};
use super::leaving::{batches, heartbeat};
use crate::deletion::port::DeletionFilter;
use crate::deletion::purge::{PurgeOptions, purge};
use crate::deletion::request::DeleteOptions;
use crate::fleet::templates::CreateTemplate;
use crate::fleet::{agents, generators, links, objects, offers, stacks, tags, templates};
use crate::ports::Stores;
use crate::ports::store::Page;
use crate::rollouts::control;
use crate::testing::Dice;
use crate::testing::world::World;

/// What happens in one sequence.
const MOVES: u32 = 120;

/// Runs one sequence for each of these seeds; on a store that nobody else uses.
pub async fn fleet_model(stores: Stores, seeds: &[u64], dice: impl Fn(u64) -> Dice) {
    let client = Client::new(&World::new(stores).await).with_templates();
    for seed in seeds {
        let mut model = Model::new(&client, *seed, dice(*seed)).await;
        for number in 0..MOVES {
            let what = model.move_on().await;
            model.check(&format!("move {number}, {what}")).await;
        }
        model.finish().await;
    }
}

struct Agent {
    id: AgentId,
    is_online: bool,
    /// The deletion that took it, if one did.
    deletion: Option<DeletionId>,
    /// What is deployed on its cluster, by stack.
    cluster: BTreeMap<StackId, String>,
    /// The value of its annotation.
    site: Option<String>,
}

struct Model<'a> {
    client: &'a Client,
    seed: u64,
    dice: Dice,
    generators: Vec<GeneratorId>,
    stacks: Vec<(StackId, usize)>,
    agents: Vec<Agent>,
    deletions: BTreeSet<DeletionId>,
    targets: BTreeSet<(AgentId, StackId)>,
    registered: BTreeSet<(AgentId, GeneratorId)>,
    submitted: u32,
    template: TemplateId,
}

impl<'a> Model<'a> {
    async fn new(client: &'a Client, seed: u64, dice: Dice) -> Self {
        let schema = json!({ "properties": {
            "site": { "default": "none", "x-agent-annotation": "site" },
        } });
        let input = CreateTemplate {
            name: client.name("template"),
            content: content("{{ site }}-{{ value }}"),
            parameters_schema: schema.to_string(),
            ..CreateTemplate::default()
        };
        let template = templates::create(&client.context, &admin(), input, None).await;
        let mut model = Self {
            client,
            seed,
            dice,
            generators: Vec::new(),
            stacks: Vec::new(),
            agents: Vec::new(),
            deletions: BTreeSet::new(),
            targets: BTreeSet::new(),
            registered: BTreeSet::new(),
            submitted: 0,
            template: template.expect("a template"),
        };
        for index in 0..2 {
            let generator = client.generator().await;
            model.generators.push(generator);
            for _ in 0..2 {
                model.stacks.push((client.stack(generator).await, index));
            }
        }
        for _ in 0..3 {
            let id = client.agent().await;
            heartbeat(client, id, &["keep"]).await;
            let cluster = BTreeMap::new();
            let agent = Agent { id, is_online: true, deletion: None, cluster, site: None };
            model.agents.push(agent);
        }
        model
    }

    fn roll(&mut self, below: usize) -> usize {
        (self.dice)(below as u64) as usize
    }

    /// Something happens. A refusal is part of the world: what it says is checked elsewhere.
    async fn move_on(&mut self) -> &'static str {
        let Client { context, .. } = self.client;
        let who = admin();
        let (at, of) = (self.roll(self.stacks.len()), self.roll(self.agents.len()));
        let (stack, index) = self.stacks[at];
        let (generator, agent) = (self.generators[index], self.agents[of].id);
        match self.roll(23) {
            0..=3 => {
                self.submitted += 1;
                let value = format!("v{}", self.submitted);
                if self.roll(3) == 0 {
                    let of = (self.template, &json!({ "value": value }));
                    templates::instantiate(context, &who, stack, of, None).await.ok();
                } else {
                    self.client.submit(stack, &value).await.ok();
                }
                "a submission"
            }
            4 => {
                objects::submit(context, &who, stack, ("", true), None).await.ok();
                "a marker"
            }
            5 | 6 => {
                let keep = self.roll(3) == 0;
                let options = DeleteOptions { keep, ..DeleteOptions::default() };
                let deleted = stacks::delete(context, &who, stack, options).await;
                self.deletions.extend(deleted.ok());
                "the deletion of a stack"
            }
            7 => {
                let deleted = self.client.delete_generator(generator).await;
                self.deletions.extend(deleted.ok());
                "the deletion of a generator"
            }
            8..=10 => {
                let some: Vec<_> = self.deletions.iter().copied().collect();
                if !some.is_empty() {
                    let id = some[self.roll(some.len())];
                    let is_back = self.client.restore(id).await.is_ok();
                    let back = |one: &&mut Agent| is_back && one.deletion == Some(id);
                    for agent in self.agents.iter_mut().filter(back) {
                        agent.deletion = None;
                    }
                }
                "a restore"
            }
            11 | 12 => {
                if links::register(context, &who, agent, generator).await.is_ok() {
                    self.registered.insert((agent, generator));
                }
                if links::target(context, &who, agent, stack).await.is_ok() {
                    self.targets.insert((agent, stack));
                }
                "a target"
            }
            13 => {
                if links::untarget(context, &who, agent, stack).await.is_ok() {
                    self.targets.remove(&(agent, stack));
                }
                "no target"
            }
            14 => {
                if links::unregister(context, &who, agent, generator).await.is_ok() {
                    self.registered.remove(&(agent, generator));
                }
                "no consent"
            }
            15 => {
                self.agents[of].is_online = self.roll(2) == 0;
                "an agent on- or offline"
            }
            16 => {
                let strategy = Strategy { parallel: 1, ..Strategy::default() };
                let strategy = (self.roll(2) == 0).then_some(strategy);
                let set = stacks::set_strategy(context, &who, stack, strategy, Expected::Any);
                set.await.ok();
                "a strategy"
            }
            17 => {
                let some: Vec<_> = self.deletions.iter().copied().collect();
                if !some.is_empty() {
                    let id = some[self.roll(some.len())];
                    let (force, now) = (true, self.roll(2) == 0);
                    let reason = Some("the model");
                    let options = PurgeOptions { force, now, reason, ..PurgeOptions::default() };
                    purge(context, &who, id, options).await.ok();
                }
                "a purge"
            }
            18 => {
                if self.roll(3) == 0 {
                    let options = DeleteOptions::default();
                    let deleted = agents::delete(context, &who, agent, options).await;
                    if let Ok(deletion) = deleted {
                        self.agents[of].deletion = Some(deletion);
                        self.deletions.insert(deletion);
                    }
                }
                "the deletion of an agent"
            }
            20 => {
                let site = format!("s{}", self.roll(3));
                let owner = agent.into();
                if tags::remove_annotation(context, &who, owner, "site").await.is_ok() {
                    self.agents[of].site = None;
                }
                if tags::add_annotation(context, &who, owner, ("site", &site)).await.is_ok() {
                    self.agents[of].site = Some(site);
                }
                "an annotation"
            }
            19 => {
                self.client.pass().await;
                "a pass over roll-outs"
            }
            _ => {
                let fate = self.roll(8);
                self.poll(of, fate).await;
                "a poll"
            }
        }
    }

    /// An agent asks and does what it is told: everything, or it fails, or it crashes before it
    /// reports.
    async fn poll(&mut self, of: usize, fate: usize) {
        let (client, seed) = (self.client, self.seed);
        let agent = &mut self.agents[of];
        if !agent.is_online {
            return;
        }
        client.check_held(agent.id).await;
        let offered = match offers::target_state(&client.context, &admin(), agent.id).await {
            Ok(offered) => offered,
            Err(error) => {
                assert!(agent.deletion.is_some(), "seed {seed}: {error}");
                assert_eq!(error.kind(), ErrorKind::AgentNotFound);
                return;
            }
        };
        let present: BTreeSet<_> = offered.iter().map(|one| one.stack_id).collect();
        assert_eq!(present.len(), offered.len(), "seed {seed}: one object for each stack");
        for stack in agent.cluster.keys() {
            assert!(present.contains(stack), "seed {seed}: absence would remove {stack}");
        }
        for object in offered {
            if fate == 0 {
                client.report(agent.id, object.id, "FAILURE").await.expect("a report");
                continue;
            }
            if object.is_marker {
                agent.cluster.remove(&object.stack_id);
            } else {
                agent.cluster.insert(object.stack_id, object.content.clone());
            }
            if fate != 1 {
                client.report(agent.id, object.id, "SUCCESS").await.expect("a report");
            }
        }
    }

    /// What holds after every move.
    async fn check(&self, when: &str) {
        let Client { context, .. } = self.client;
        let when = format!("seed {}, {when}", self.seed);
        let mut live = BTreeSet::new();
        for generator in &self.generators {
            if generators::fetch(context, &admin(), *generator, false).await.is_ok() {
                live.insert(*generator);
            }
        }
        for (stack, index) in &self.stacks {
            let is_orphan = !live.contains(&self.generators[*index]);
            assert!(!(is_orphan && self.client.is_live(*stack).await), "{when}: {stack}");
        }
        for agent in self.agents.iter().filter(|one| one.deletion.is_none()) {
            for stack in agent.cluster.keys() {
                let found = stacks::fetch(context, &admin(), *stack, true).await;
                assert!(found.is_ok(), "{when}: {stack} was purged while an agent has it");
            }
        }
    }

    /// Everybody works from now on: clusters become what is desired, and what is owed is done.
    async fn finish(&mut self) {
        let client = self.client;
        let Client { context, .. } = client;
        for agent in &mut self.agents {
            agent.is_online = true;
        }
        for _ in 0..40 {
            for (stack, _) in &self.stacks {
                for rollout in client.rollouts(*stack).await {
                    if rollout.state == RolloutState::Paused {
                        let resumed = control::resume(context, &admin(), rollout.id, true).await;
                        resumed.expect("it goes on");
                    }
                }
            }
            client.pass().await;
            for of in 0..self.agents.len() {
                self.poll(of, 7).await;
            }
        }
        self.check("the end").await;
        for agent in self.agents.iter().filter(|one| one.deletion.is_none()) {
            let mut desired = BTreeMap::new();
            for (stack, index) in &self.stacks {
                let is_associated = self.targets.contains(&(agent.id, *stack))
                    && self.registered.contains(&(agent.id, self.generators[*index]));
                if !is_associated || !client.is_live(*stack).await {
                    continue;
                }
                let page = Page { after: None, limit: 1_000 };
                let all = objects::list(context, &admin(), *stack, page).await.expect("a list");
                let newest = all.last().filter(|newest| !newest.is_marker);
                desired.extend(newest.map(|newest| (*stack, deployed(newest, agent))));
            }
            assert_eq!(agent.cluster, desired, "seed {}: agent {}", self.seed, agent.id);
        }
        // Nothing is owed to agents that are there, so every purge that began comes to its end.
        let filter =
            DeletionFilter { state: Some(DeletionState::Purging), ..DeletionFilter::default() };
        let page = Page { after: None, limit: 1_000 };
        for _ in 0..3 {
            let listed = context.stores.deletion.deletion_list(&filter, page).await;
            for deletion in listed.expect("a list").into_iter() {
                let is_agent = deletion.target.kind == SubjectKind::Agent;
                let state = batches(client, deletion.id).await;
                assert!(!is_agent || state == DeletionState::Purged, "{deletion:?}");
            }
        }
    }
}

/// What an agent has of an object.
fn deployed(object: &DeploymentObject, agent: &Agent) -> String {
    let Some(per_agent) = &object.per_agent else { return object.content.clone() };
    let value = per_agent.parameters["value"].as_str().unwrap_or_default();
    let site = agent.site.as_deref().unwrap_or("none");
    content(&format!("{site}-{value}"))
}
