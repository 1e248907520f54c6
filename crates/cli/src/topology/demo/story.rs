//! What happens in the demo of workspaces, and what has to be true after each part.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use slipway_core::broker::phase::Phase;
use slipway_wire::broker::{Resource, ResourceDetail};
use slipway_wire::deletion::Deletion;
use slipway_wire::files::{AppliedDocument, Apply, SubmittedDocument};
use slipway_wire::topology::{
    Because, MarkServer, ScaleGroup, ScaledGroup, Server, TeardownOrder, TeardownWorkspace,
    Workspace,
};
use tokio::time::sleep;

use super::order::{Machine, Removed, came_after, went_after};
use super::provider::Provider;
use crate::client::{Client, Listing};
use crate::demo::{Fact, Screen, expect};
use crate::error::Error;
use crate::kind::Kind as _;

const SAMPLE: &str = include_str!("workspace.yaml");

/// The names of the sample.
const WORKSPACE: &str = "cluster";
const WORKERS: &str = "workers";
const CONTROL_PLANE: &str = "cp-1";
/// The one that is scaled down. It is not the newest, which would go by itself.
const MARKED: &str = "worker-1";

/// The roles in the order in which their servers come; they go in the other order.
const ROLES: [&str; 3] = ["ControlPlane", "LoadBalancer", "Worker"];

const REASON: &str = "demo";
const PACE: Duration = Duration::from_millis(100);

/// How many servers each part of the story reached, as it was verified.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    pub(super) servers: usize,
    pub(super) ready: usize,
    pub(super) refused: usize,
    pub(super) scaled_down: usize,
    pub(super) torn_down: usize,
}

/// What the servers really are, counted without asking the control plane.
#[derive(Clone, Copy)]
pub(super) enum Machines<'a> {
    /// Node agents of the demo.
    Processes(&'a dyn Fn() -> usize),
    /// Servers of a provider.
    Provider(&'a Provider),
}

impl Machines<'_> {
    async fn count(self) -> Result<usize, Error> {
        match self {
            Self::Processes(count) => Ok(count()),
            Self::Provider(provider) => Ok(provider.servers().await?.len()),
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Processes(_) => "processes of nodes",
            Self::Provider(_) => "machines at the provider",
        }
    }
}

/// `project` is the name of the project that the workspace is in.
pub(super) async fn tell(
    client: &Client,
    project: &str,
    machines: Machines<'_>,
    screen: &mut Screen<'_>,
) -> Result<Outcome, Error> {
    let (seen, outcome) = (BTreeMap::new(), Outcome::default());
    let mut story = Story { client, project, machines, screen, seen, outcome };
    story.apply().await?;
    story.come_up().await?;
    story.refuse().await?;
    story.scale_down().await?;
    story.tear_down().await?;
    Ok(story.outcome)
}

struct Story<'a, 'b> {
    client: &'a Client,
    project: &'a str,
    machines: Machines<'a>,
    screen: &'a mut Screen<'b>,
    /// The phase of each server as it was shown.
    seen: BTreeMap<String, String>,
    outcome: Outcome,
}

impl Story<'_, '_> {
    async fn apply(&mut self) -> Result<(), Error> {
        self.screen.heading("A workspace is applied: one document with three groups");
        let mut document: Value = serde_yaml_ng::from_str(SAMPLE)
            .map_err(|error| Error::Demo(format!("the sample is no YAML: {error}")))?;
        document["metadata"]["project"] = json!(self.project);
        if let Machines::Provider(provider) = self.machines {
            provider.redeclare(&mut document);
        }
        let origin = "workspace.yaml".to_owned();
        let body = Apply {
            source: "demo".to_owned(),
            documents: vec![SubmittedDocument { origin, document, plan: None }],
            dry_run: false,
            force: false,
        };
        let applied: Vec<AppliedDocument> = self.client.post(&["apply"], &body).await?;
        let outcomes = applied.iter().map(|one| match &one.refusal {
            Some(refusal) => format!("{}: {}", one.outcome, refusal.message),
            None => one.outcome.clone(),
        });
        let outcomes = outcomes.collect::<Vec<_>>().join("; ");
        self.screen.check(Fact::equal("the document is accepted", "created", &outcomes));
        match outcomes.as_str() {
            "created" => Ok(()),
            _ => Err(Error::Demo(format!("the sample was not applied: {outcomes}"))),
        }
    }

    async fn come_up(&mut self) -> Result<(), Error> {
        self.screen.heading("Its servers come in the order of their dependencies");
        let is_ready = |server: &Server| server.phase == Phase::Ready.as_str();
        let servers = self.until(|servers| servers.len() == 5 && servers.iter().all(is_ready));
        let servers = servers.await?;
        self.outcome.servers = servers.len();
        self.outcome.ready = servers.iter().filter(|server| is_ready(server)).count();
        let mut names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
        names.sort_unstable();
        let expected = "cp-1 lb-1 worker-1 worker-2 worker-3";
        self.screen.check(Fact::equal("five servers are Ready", expected, names.join(" ")));
        let mut machines = Vec::new();
        for server in servers {
            let detail: ResourceDetail = self.client.get(&["resources", &server.id]).await?;
            machines.push(Machine { role: server.role, detail });
        }
        for pair in ROLES.windows(2) {
            self.screen.check(came_after(pair[0], pair[1], &machines));
        }
        self.protection_mirrors_the_lock(&machines).await?;
        self.machines_run(5).await
    }

    async fn refuse(&mut self) -> Result<(), Error> {
        self.screen.heading("Gates refuse what must not go");
        let path = ["workspaces", WORKSPACE, "servers", CONTROL_PLANE, "scale-down"];
        let asked = self.client.post::<Value>(&path, &because()).await;
        self.is_refused(
            "a control plane is not scaled down",
            "422 control_plane_immutable",
            asked,
        )?;
        let query = [("reason", REASON.to_owned())];
        let asked = self.client.delete::<Value>(&["workspaces", WORKSPACE], &query).await;
        let fact = "a workspace with servers is not just deleted";
        self.is_refused(fact, "422 workspace_not_empty", asked)
    }

    async fn scale_down(&mut self) -> Result<(), Error> {
        self.screen.heading("One worker goes, the one that is marked; a second one may not");
        let path = ["workspaces", WORKSPACE, "servers", MARKED, "mark"];
        let marked: Server = self.client.post(&path, &MarkServer { marked: true }).await?;
        self.screen.now(&marked.name, "is marked to go first");
        let path = ["workspaces", WORKSPACE, "groups", WORKERS, "scale-down"];
        let body = ScaleGroup { by: 1, reason: Some(REASON.to_owned()) };
        let scaled: ScaledGroup = self.client.post(&path, &body).await?;
        let fact = "the marked worker leaves, and no other";
        self.screen.check(Fact::equal(fact, MARKED, scaled.leaving.join(" ")));
        self.screen.check(Fact::equal("two workers are wanted now", 2, scaled.wanted));
        // Also while the first one is on its way: it is not one of those that are left.
        let asked = self.client.post::<Value>(&path, &body).await;
        self.is_refused("a group keeps its least", "422 scale_min_violation", asked)?;
        let left = self.until(|servers| servers.iter().all(|one| one.name != MARKED)).await?;
        self.outcome.scaled_down += 1;
        let workers = left.iter().filter(|server| server.group == WORKERS).count();
        self.screen.check(Fact::equal("the other two workers stay", 2, workers));
        self.machines_run(4).await
    }

    async fn tear_down(&mut self) -> Result<(), Error> {
        self.screen.heading("The workspace is taken down, workers first");
        let servers = self.servers().await?;
        let path = ["workspaces", WORKSPACE, "teardown"];
        let confirm = WORKSPACE.to_owned();
        let reason = Some(REASON.to_owned());
        let mut body =
            TeardownWorkspace { confirm, reason, dry_run: true, break_glass: true, plan: None };
        let order: TeardownOrder = self.client.post(&path, &body).await?;
        let stages = order.stages.iter().map(|stage| {
            let groups = stage.groups.iter().map(|group| group.group.as_str());
            groups.collect::<Vec<_>>().join("+")
        });
        let stages = stages.collect::<Vec<_>>().join(" > ");
        let expected = "workers > load-balancer > control-plane";
        self.screen.check(Fact::equal("the dry run names this order", expected, stages));
        body.dry_run = false;
        let deletion: Deletion = self.client.post(&path, &body).await?;
        self.screen.now(WORKSPACE, "its teardown begins");
        self.until(<[Server]>::is_empty).await?;
        let client = self.client;
        expect(self.screen, "the deletion of the workspace is done", "done", async || {
            let found: Deletion = client.get(&[Deletion::PATH, &deletion.id]).await?;
            Ok(found.state)
        })
        .await?;
        let mut removed = Vec::new();
        for server in servers {
            removed.push(self.removed(server).await?);
        }
        for pair in ROLES.windows(2) {
            self.screen.check(went_after(pair[1], pair[0], &removed));
        }
        self.outcome.torn_down = removed.len();
        let wanted = Listing::default().with("project", Some(self.project));
        let left = client.list::<Workspace>(&[Workspace::PATH], wanted).await?.items;
        self.screen.check(Fact::equal("no workspace is left", 0, left.len()));
        self.machines_run(0).await?;
        match self.machines {
            Machines::Processes(_) => Ok(()),
            Machines::Provider(provider) => provider.release().await,
        }
    }

    /// The server with its own deletion, which is one of the deletions of the teardown.
    async fn removed(&self, server: Server) -> Result<Removed, Error> {
        let found: Resource = self.client.get(&["resources", &server.id]).await?;
        let Some(deletion) = found.deletion_id else {
            return Err(Error::Demo(format!("{} went without a deletion", server.name)));
        };
        let deletion: Deletion = self.client.get(&[Deletion::PATH, &deletion]).await?;
        Ok(Removed { role: server.role, deletion })
    }

    /// All servers of the project, also while their workspace leaves.
    async fn servers(&self) -> Result<Vec<Server>, Error> {
        let wanted = Listing::default().with("project", Some(self.project));
        Ok(self.client.list(&["servers"], wanted).await?.items)
    }

    /// Shows every change of phase until all servers are as wanted. The time limit of the demo
    /// ends it otherwise.
    async fn until(&mut self, done: impl Fn(&[Server]) -> bool) -> Result<Vec<Server>, Error> {
        loop {
            let servers = self.servers().await?;
            let mut gone = std::mem::take(&mut self.seen);
            for server in &servers {
                if gone.remove(&server.name).as_ref() != Some(&server.phase) {
                    self.screen.now(&server.name, &server.phase);
                }
                self.seen.insert(server.name.clone(), server.phase.clone());
            }
            for name in gone.keys() {
                self.screen.now(name, "is gone");
            }
            if let Some(failed) = servers.iter().find(|one| one.phase == Phase::Failed.as_str()) {
                return Err(Error::Demo(format!("{} ended in Failed", failed.name)));
            }
            if done(&servers) {
                return Ok(servers);
            }
            sleep(PACE).await;
        }
    }

    /// Waits until there are exactly so many machines.
    async fn machines_run(&mut self, count: usize) -> Result<(), Error> {
        let machines = self.machines;
        let fact = match count {
            0 => format!("no {} are left", machines.word()),
            count => format!("there are {count} {}, one for each server", machines.word()),
        };
        let expected = count.to_string();
        let count = async || Ok(machines.count().await?.to_string());
        expect(self.screen, &fact, &expected, count).await
    }

    /// The provider protects what the workspace locks, and nothing else.
    async fn protection_mirrors_the_lock(&mut self, machines: &[Machine]) -> Result<(), Error> {
        let Machines::Provider(provider) = self.machines else { return Ok(()) };
        let locked = machines.iter().filter(|one| one.role == ROLES[0]);
        let locked: BTreeSet<_> = locked.map(|one| one.detail.resource.id.as_str()).collect();
        let fact = "the provider protects the control plane, and no other server";
        expect(self.screen, fact, "true", async || {
            let listed = provider.servers().await?;
            let protected = listed.iter().filter(|one| one.is_protected());
            let protected: BTreeSet<_> = protected.filter_map(|one| one.resource()).collect();
            Ok((protected == locked).to_string())
        })
        .await
    }

    /// Checks that what was asked for was refused, with this status and code.
    fn is_refused(
        &mut self,
        fact: &str,
        expected: &str,
        asked: Result<Value, Error>,
    ) -> Result<(), Error> {
        let seen = match asked {
            Ok(_) => "it was accepted".to_owned(),
            Err(Error::Problem(problem)) => {
                self.screen.now("refused", &short(&problem.message));
                format!("{} {}", problem.status, problem.code)
            }
            Err(error) => return Err(error),
        };
        self.screen.check(Fact::equal(fact, expected, &seen));
        if seen != expected {
            return Err(Error::Demo(format!("not refused as it should be: {fact}")));
        }
        self.outcome.refused += 1;
        Ok(())
    }
}

fn because() -> Because {
    Because { reason: Some(REASON.to_owned()) }
}

/// As much of a message as a line has room for.
fn short(message: &str) -> String {
    const ROOM: usize = 54;
    match message.char_indices().nth(ROOM) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use slipway_wire::topology::WorkspaceSpec;

    use super::*;

    #[test]
    fn the_sample_is_a_workspace_with_the_names_of_the_story() {
        let sample: Value = serde_yaml_ng::from_str(SAMPLE).unwrap();
        assert_eq!(sample["metadata"]["name"], WORKSPACE);
        let spec: WorkspaceSpec = serde_json::from_value(sample["spec"].clone()).unwrap();
        let roles: Vec<_> = spec.groups.iter().map(|group| group.role.as_str()).collect();
        assert_eq!(roles, ROLES);
        assert_eq!(spec.groups.iter().map(|group| group.count).sum::<u32>(), 5);
        assert!(spec.groups.iter().any(|group| group.name == WORKERS && group.scale.min == 2));
    }
}
