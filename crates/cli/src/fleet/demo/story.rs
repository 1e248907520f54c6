//! The demo of Fleet, step by step. Whatever it waits for becomes a fact: what was
//! expected, and what was seen in the end.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_wire::deletion::{Deletion, Restore};
use slipway_wire::fleet::{
    Agent, AgentEvent, AgentTarget, CreateAgentRequest, CreateAgentResponse,
    CreateDeploymentObjectRequest, CreateGeneratorResponse, DeploymentObject, NewAgentLabel,
    NewAgentTarget, NewGenerator, NewStack, Stack, UpdateAgent,
};
use slipway_wire::operations::Explanation;
use slipway_wire::rollouts::{
    PauseRollout, ResumeRollout, Rollout, RolloutMember, RolloutStrategy,
};

use super::content::{FIRST, NOTHING, SECOND, Version};
use super::sites::Site;
use crate::client::{Client, Listing};
use crate::demo::{Fact, Screen, expect};
use crate::error::Error;

/// The label of the canary's agent.
const CANARY: &str = "canary";

/// How many agents each part of the story reached, as it was verified.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    pub(super) delivered: usize,
    pub(super) rolled_out: usize,
    pub(super) removed_at_once: usize,
    pub(super) removed_later: usize,
    pub(super) restored: usize,
    pub(super) removed_again: usize,
}

/// `run` is the name of the project, and the beginning of the objects' names.
pub(super) async fn tell(
    client: &Client,
    run: &str,
    sites: &mut [Site; 3],
    screen: &mut Screen<'_>,
) -> Result<Outcome, Error> {
    let stack_id = prepare(client, run, sites, screen).await?;
    let mut story = Story { client, run, stack_id, sites, screen, outcome: Outcome::default() };
    story.deliver().await?;
    story.roll_out().await?;
    let deletion = story.delete_while_one_is_offline().await?;
    story.restore(&deletion).await?;
    story.delete_again().await?;
    Ok(story.outcome)
}

/// Makes the rows and starts the agents; returns the id of the stack.
async fn prepare(
    client: &Client,
    run: &str,
    sites: &mut [Site; 3],
    screen: &mut Screen<'_>,
) -> Result<String, Error> {
    screen.heading("A stack, and three agents that are to have it");
    let body = NewGenerator {
        description: None,
        name: "pipeline".to_owned(),
        project: Some(run.to_owned()),
        accepts_secrets: None,
        retention_seconds: None,
    };
    let made: CreateGeneratorResponse = client.post(&["generators"], &body).await?;
    let generator_id = made.generator.id;
    let body =
        NewStack { description: None, generator_id: generator_id.clone(), name: "web".to_owned() };
    let stack: Stack = client.post(&["stacks"], &body).await?;
    for (index, site) in sites.iter_mut().enumerate() {
        let body = CreateAgentRequest {
            cluster_name: site.name.to_owned(),
            generator_ids: vec![generator_id.clone()],
            name: "edge".to_owned(),
            project: Some(run.to_owned()),
        };
        let made: CreateAgentResponse = client.post(&["agents"], &body).await?;
        let agent_id = made.agent.id;
        let body = NewAgentTarget { agent_id: agent_id.clone(), stack_id: stack.id.clone() };
        let _: AgentTarget = client.post(&["agents", &agent_id, "targets"], &body).await?;
        if index == 0 {
            let body = NewAgentLabel { agent_id: agent_id.clone(), label: CANARY.to_owned() };
            let _: Value = client.post(&["agents", &agent_id, "labels"], &body).await?;
        }
        let body = UpdateAgent { status: Some("ACTIVE".to_owned()), ..UpdateAgent::default() };
        let _: Agent = client.put(&["agents", &agent_id], &body).await?;
        site.assign(agent_id, &made.initial_pak)?;
        start(client, site, screen)?;
    }
    Ok(stack.id)
}

fn start(client: &Client, site: &mut Site, screen: &mut Screen<'_>) -> Result<(), Error> {
    site.start(client.server())?;
    let pid = site.pid().map_or("none".to_owned(), |pid| pid.to_string());
    screen.now(site.name, &format!("`slipway agent {}` runs, process {pid}", site.kind()));
    Ok(())
}

struct Story<'a, 'b> {
    client: &'a Client,
    run: &'a str,
    stack_id: String,
    sites: &'a mut [Site; 3],
    screen: &'a mut Screen<'b>,
    outcome: Outcome,
}

impl Story<'_, '_> {
    async fn deliver(&mut self) -> Result<(), Error> {
        self.screen.heading("The stack is delivered");
        self.submit(FIRST).await?;
        self.outcome.delivered = self.all_have(FIRST).await?;
        self.api_says("berlin: current, oslo: current, porto: current").await
    }

    /// The canary's agent is stopped until the roll-out is paused: otherwise the others
    /// could have the new version before anybody saw that the canary has it first.
    async fn roll_out(&mut self) -> Result<(), Error> {
        self.screen.heading("A new version is rolled out, canary first");
        let strategy =
            RolloutStrategy { waves: vec![CANARY.to_owned()], ..RolloutStrategy::default() };
        let _: Value = self.client.put(&["stacks", &self.stack_id, "strategy"], &strategy).await?;
        self.stop(0).await?;
        self.submit(SECOND).await?;
        let rollout = self.rollout_id().await?;
        self.members_are(&rollout, "berlin: changing, oslo: waiting, porto: waiting").await?;
        let body = PauseRollout { reason: Some("demo: look at the canary first".to_owned()) };
        let _: Rollout = self.client.post(&["rollouts", &rollout, "pause"], &body).await?;
        self.screen.now("roll-out", "is paused; the canary comes to its end");
        start(self.client, &mut self.sites[0], self.screen)?;
        self.has(0, &SECOND.line()).await?;
        for index in [1, 2] {
            let seen = self.content(index).await?;
            let name = self.sites[index].name;
            let fact = format!("{name} still has the old version: {}", FIRST.line());
            self.screen.check(Fact::equal(fact, FIRST.line(), seen));
        }
        self.api_says("berlin: current, oslo: behind, porto: behind").await?;
        let body = ResumeRollout { skip_failed: false };
        let _: Rollout = self.client.post(&["rollouts", &rollout, "resume"], &body).await?;
        self.screen.now("roll-out", "goes on");
        self.outcome.rolled_out = self.all_have(SECOND).await?;
        let client = self.client;
        expect(self.screen, "the roll-out is done", "done", async || {
            Ok(client.get::<Rollout>(&["rollouts", &rollout]).await?.state)
        })
        .await?;
        self.api_says("berlin: current, oslo: current, porto: current").await
    }

    /// Returns the id of the deletion.
    async fn delete_while_one_is_offline(&mut self) -> Result<String, Error> {
        self.screen.heading("The stack is deleted while one agent is offline");
        self.stop(2).await?;
        let deletion = self.delete("demo: a mistake").await?;
        for index in [0, 1] {
            self.has(index, NOTHING).await?;
            self.outcome.removed_at_once += 1;
        }
        self.removed(&deletion, "berlin: removed, oslo: removed, porto: owed").await?;
        let seen = self.content(2).await?;
        let fact = format!("porto still has it: {}", SECOND.line());
        self.screen.check(Fact::equal(fact, SECOND.line(), seen));
        self.api_says("porto: removing").await?;
        self.screen.now("porto", "its agent comes back");
        start(self.client, &mut self.sites[2], self.screen)?;
        self.has(2, NOTHING).await?;
        self.outcome.removed_later += 1;
        self.removed(&deletion, "berlin: removed, oslo: removed, porto: removed").await?;
        Ok(deletion)
    }

    async fn restore(&mut self, deletion: &str) -> Result<(), Error> {
        self.screen.heading("The deletion is undone");
        let body = json!({ "reason": "demo: it was a mistake" });
        let _: Restore = self.client.post(&["deletions", deletion, "restore"], &body).await?;
        self.outcome.restored = self.all_have(SECOND).await?;
        self.api_says("berlin: current, oslo: current, porto: current").await?;
        let found: Deletion = self.client.get(&["deletions", deletion]).await?;
        self.screen.check(Fact::equal("the deletion is restored", "restored", found.state));
        for index in 0..self.sites.len() {
            let reports = self.reports(index).await?;
            let expected = "DELETE SUCCESS: 1, DEPLOY SUCCESS: 3";
            let fact = format!("{} reported each change once", self.sites[index].name);
            self.screen.check(Fact::equal(fact, expected, reports));
        }
        Ok(())
    }

    async fn delete_again(&mut self) -> Result<(), Error> {
        self.screen.heading("The stack is deleted for good");
        let deletion = self.delete("demo: it ends").await?;
        for index in 0..self.sites.len() {
            self.has(index, NOTHING).await?;
            self.outcome.removed_again += 1;
        }
        self.removed(&deletion, "berlin: removed, oslo: removed, porto: removed").await
    }

    async fn submit(&mut self, version: Version) -> Result<(), Error> {
        let yaml_content = version.manifests(self.run);
        let body = CreateDeploymentObjectRequest { is_deletion_marker: false, yaml_content };
        let path = ["stacks", &self.stack_id, "deployment-objects"];
        let made: DeploymentObject = self.client.post(&path, &body).await?;
        let what = format!("object {} is submitted: {}", made.sequence_id, version.line());
        self.screen.now("web", &what);
        Ok(())
    }

    async fn delete(&mut self, reason: &str) -> Result<String, Error> {
        let query = [("reason", reason.to_owned())];
        let located = self.client.delete_located(&["stacks", &self.stack_id], &query).await?;
        self.screen.now("web", &format!("is deleted ({reason})"));
        located.ok_or_else(|| Error::Demo("the deletion has no record".to_owned()))
    }

    async fn stop(&mut self, index: usize) -> Result<(), Error> {
        let site = &mut self.sites[index];
        if !site.stop().await {
            return Err(Error::Demo(format!("the agent of {} did not end in order", site.name)));
        }
        self.screen.now(site.name, "its agent is stopped");
        Ok(())
    }

    async fn content(&self, index: usize) -> Result<String, Error> {
        self.sites[index].content(self.run, &self.stack_id).await
    }

    /// Waits until a site has exactly this.
    async fn has(&mut self, index: usize, expected: &str) -> Result<(), Error> {
        let Self { run, stack_id, sites, screen, .. } = self;
        let site = &sites[index];
        let fact = format!("{} has exactly: {expected}", site.name);
        expect(screen, &fact, expected, async || site.content(run, stack_id).await).await
    }

    /// Waits until every site has exactly this; how many have.
    async fn all_have(&mut self, version: Version) -> Result<usize, Error> {
        for index in 0..self.sites.len() {
            self.has(index, &version.line()).await?;
        }
        Ok(self.sites.len())
    }

    /// Waits until the explanation of the stack names these agents so.
    async fn api_says(&mut self, expected: &str) -> Result<(), Error> {
        let Self { client, stack_id, sites, screen, .. } = self;
        let fact = format!("the API says {expected}");
        expect(screen, &fact, expected, async || {
            let found: Explanation = client.get(&["explain", "stack", stack_id]).await?;
            Ok(by_site(&sites[..], found.parts.into_iter().map(|part| (part.id, part.state))))
        })
        .await
    }

    /// Waits until the record of the deletion has the agents so.
    async fn removed(&mut self, deletion: &str, expected: &str) -> Result<(), Error> {
        let Self { client, sites, screen, .. } = self;
        let fact = format!("the record says {expected}");
        expect(screen, &fact, expected, async || {
            let found: Deletion = client.get(&["deletions", deletion]).await?;
            let state = |removed_at: Option<String>| match removed_at {
                Some(_) => "removed".to_owned(),
                None => "owed".to_owned(),
            };
            let agents = found.deliveries.into_iter();
            Ok(by_site(&sites[..], agents.map(|one| (one.agent_id, state(one.removed_at)))))
        })
        .await
    }

    /// The roll-out of the newest object.
    async fn rollout_id(&self) -> Result<String, Error> {
        let listing = Listing::default().with("subject", Some(self.stack_id.as_str()));
        let found = self.client.list::<Rollout>(&["rollouts"], listing).await?.items;
        let open = found.into_iter().find(|rollout| rollout.ended_at.is_none());
        open.and_then(|rollout| rollout.id)
            .ok_or_else(|| Error::Demo("the object did not become a roll-out".to_owned()))
    }

    async fn members_are(&mut self, rollout: &str, expected: &str) -> Result<(), Error> {
        let Self { client, sites, screen, .. } = self;
        let fact = format!("the roll-out has {expected}");
        expect(screen, &fact, expected, async || {
            let path = ["rollouts", rollout, "members"];
            let found = client.list::<RolloutMember>(&path, Listing::default()).await?.items;
            Ok(by_site(&sites[..], found.into_iter().map(|one| (one.id, one.state))))
        })
        .await
    }

    /// How many reports of which kind an agent made.
    async fn reports(&self, index: usize) -> Result<String, Error> {
        let agent_id = &self.sites[index].agent_id;
        let path = ["agents", agent_id, "events"];
        let found = self.client.list::<AgentEvent>(&path, Listing::default()).await?.items;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for report in found {
            *counts.entry(format!("{} {}", report.event_type, report.status)).or_default() += 1;
        }
        let counts = counts.iter().map(|(what, count)| format!("{what}: {count}"));
        Ok(counts.collect::<Vec<_>>().join(", "))
    }
}

/// States by agent id, with the names of the sites, in their order.
fn by_site(sites: &[Site], states: impl Iterator<Item = (String, String)>) -> String {
    let states: BTreeMap<String, String> = states.collect();
    let named = sites.iter().filter_map(|site| {
        states.get(&site.agent_id).map(|state| format!("{}: {state}", site.name))
    });
    named.collect::<Vec<_>>().join(", ")
}
