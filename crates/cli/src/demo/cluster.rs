//! The demo on a cluster: it creates everything that a declaration there needs,
//! three nodes come and go, and the project leaves nothing behind. No node is
//! frozen here: the machines are not ours to touch.
//!
//! The demo does not start what plays Crossplane on that cluster, and only the
//! control plane applies anything to it.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::Map;
use slipway_core::broker::phase::Phase;
use slipway_core::secret::Secret;
use slipway_wire::broker::DeclareResource;
use slipway_wire::catalog::{
    Cloud, CreateCloud, CreateCredential, CreateProject, Credential, Project,
};
use slipway_wire::placement::{AssignCluster, Cluster, ClusterAssignment, CreateCluster};
use tokio::time::sleep;

use super::agents::Agents;
use super::facts;
use super::plane::KUBECONFIG;
use super::records::{self, Outcome};
use super::screen::{Fact, Screen};
use super::watch::Watch;
use crate::catalog::bundle::Bundle;
use crate::catalog::import;
use crate::client::Client;
use crate::error::Error;

/// Shown before anything begins.
pub(super) const NEEDS: &str = "the cluster needs Crossplane and External Secrets (or the \
    stand-in that plays them), a provider `hetzner`, the namespace slipway-system, and the XRD \
    deploy/demo/catalog/demo-server/xrd.yaml";
/// Shown if the demo did not finish: no control plane is left to clean up.
pub(super) const LEFT: &str = "what it made on the cluster, if anything, is still there: the \
    namespace of the project, and in it composites that the finalizer slipway.dev/drain holds";
/// The blueprint that the demo publishes, as `slipway blueprint import` would.
const METADATA: &str = include_str!("../../../../deploy/demo/catalog/demo-server/metadata.json");
const XRD: &str = include_str!("../../../../deploy/demo/catalog/demo-server/xrd.yaml");
const COMPOSITION: &str =
    include_str!("../../../../deploy/demo/catalog/demo-server/composition.yaml");

const NAMES: [&str; 3] = ["demo-1", "demo-2", "demo-3"];
const PACE: Duration = Duration::from_millis(100);

pub(super) fn read_kubeconfig(path: &Path) -> Result<Secret, Error> {
    std::fs::read_to_string(path).map(Secret::new).map_err(|error| {
        Error::Usage(format!("cannot read --kubeconfig {}: {error}", path.display()))
    })
}

/// `name` is the name of everything that this run creates.
pub(super) async fn tell(
    client: &Client,
    agents: &Agents,
    name: &str,
    screen: &mut Screen<'_>,
) -> Result<Outcome, Error> {
    // Distinct from the local project and cluster of the same run.
    let name = format!("{name}-kube");
    let bundle = Bundle::from_texts(METADATA, XRD.to_owned(), COMPOSITION.to_owned())
        .map_err(|faults| Error::Demo(format!("the blueprint is not understood: {faults:?}")))?;
    screen.heading("A cluster, and what a declaration on it needs");
    register(client, &name, screen).await?;
    publish(client, &bundle, screen).await?;
    assignment(client, &name, &bundle, screen).await?;

    screen.heading("Three nodes are declared");
    let mut watch = Watch::new(client.clone(), agents.clone());
    for handle in NAMES {
        let wanted = DeclareResource {
            project: Some(name.clone()),
            handle: handle.to_owned(),
            blueprint: bundle.slug.clone(),
            ..DeclareResource::default()
        };
        watch.declare(handle, &wanted, screen).await?;
    }
    watch.until(screen, |watch| watch.all_are(Phase::Ready)).await?;
    for slot in &watch.slots {
        screen.check(Fact::equal(format!("{} is Ready", slot.name), "Ready", &slot.seen.state));
    }

    screen.heading("All three are deleted");
    for slot in &watch.slots {
        watch.delete(&slot.id, "demo: not needed any more").await?;
    }
    watch.until(screen, |watch| watch.all_are(Phase::Deleted)).await?;

    screen.heading("The project leaves the cluster");
    withdraw(client, &name, screen).await?;
    let left = wait_for_namespace(client, &name, "Deleted", screen).await?;
    screen.check(Fact::equal(
        format!("{} is gone", left.namespace),
        "Deleted",
        &left.namespace_phase,
    ));

    screen.heading("What was done");
    for slot in &watch.slots {
        screen.check(facts::left_first(slot.name, &slot.seen));
    }
    records::check(client, &watch, &NAMES.map(|name| (name, "acknowledged")), screen).await
}

/// Registers the cluster and waits until it is usable.
async fn register(client: &Client, name: &str, screen: &mut Screen<'_>) -> Result<(), Error> {
    let wanted = CreateCluster {
        name: name.to_owned(),
        engine: "crossplane".to_owned(),
        access: Some(format!("kubeconfig/{KUBECONFIG}")),
        ..CreateCluster::default()
    };
    let mut cluster: Cluster = client.post(&["clusters"], &wanted).await?;
    let mut said = String::new();
    loop {
        match cluster.verification.as_ref().map(|found| found.problem.as_deref()) {
            Some(None) => break,
            Some(Some(problem)) => say_once("cluster", problem, &mut said, screen),
            None => {}
        }
        sleep(PACE).await;
        cluster = client.get(&["clusters", name]).await?;
    }
    screen.check(Fact::new(
        format!("cluster {name} is served and can be used"),
        cluster.substrate_uid.is_some(),
        "an id of its own",
        cluster.substrate_uid.as_deref().unwrap_or("none"),
    ));
    Ok(())
}

async fn publish(client: &Client, bundle: &Bundle, screen: &mut Screen<'_>) -> Result<(), Error> {
    let entry = import::import(client, bundle).await?;
    if !entry.outcome.is_good() {
        let why = entry.messages.join("; ");
        let outcome = entry.outcome.as_str();
        return Err(Error::Demo(format!("blueprint `{}`: {outcome}: {why}", bundle.slug)));
    }
    screen.now("blueprint", &format!("{} {}", bundle.slug, entry.outcome.as_str()));
    Ok(())
}

/// Creates a project with a credential for each provider of the blueprint, and
/// waits until it is Ready on the cluster.
async fn assignment(
    client: &Client,
    name: &str,
    bundle: &Bundle,
    screen: &mut Screen<'_>,
) -> Result<(), Error> {
    let project = CreateProject { name: name.to_owned(), ..CreateProject::default() };
    let _: Project = client.post(&["projects"], &project).await?;
    for provider in &bundle.body.provider_kinds {
        let cloud = CreateCloud {
            name: format!("{name}-{provider}"),
            provider: provider.clone(),
            endpoint: Map::new(),
        };
        let cloud: Cloud = client.post(&["clouds"], &cloud).await?;
        let credential = CreateCredential {
            cloud: cloud.id,
            name: name.to_owned(),
            ..CreateCredential::default()
        };
        let credential: Credential = client.post(&["credentials"], &credential).await?;
        let path = ["projects", name, "credentials", &credential.id];
        client.silent(Method::PUT, &path).await?;
    }
    let there = AssignCluster { cluster: Some(name.to_owned()), region: None };
    let _: ClusterAssignment = client.put(&["projects", name, "cluster"], &there).await?;
    let placed = wait_for_namespace(client, name, "Ready", screen).await?;
    screen.check(Fact::equal(
        format!("{} is there for the project", placed.namespace),
        "Ready",
        &placed.namespace_phase,
    ));
    Ok(())
}

/// Requests the withdrawal of the project until the server accepts it: the
/// absence of a composite is proven a second time, one lease after the first.
async fn withdraw(client: &Client, project: &str, screen: &mut Screen<'_>) -> Result<(), Error> {
    let mut said = String::new();
    loop {
        match client.silent(Method::DELETE, &["projects", project, "cluster"]).await {
            Err(Error::Problem(problem)) if problem.code == "cluster_assignment_immutable" => {
                let what = "stays until the absence of all three is proven a second time";
                say_once("project", what, &mut said, screen);
            }
            answer => return answer,
        }
        sleep(PACE).await;
    }
}

/// Waits for a phase of the project namespace, and shows its blockers.
async fn wait_for_namespace(
    client: &Client,
    project: &str,
    phase: &str,
    screen: &mut Screen<'_>,
) -> Result<ClusterAssignment, Error> {
    let mut said = String::new();
    loop {
        let assignment: ClusterAssignment = client.get(&["projects", project, "cluster"]).await?;
        let problems = assignment.problems.join("; ");
        let seen = match problems.as_str() {
            "" => assignment.namespace_phase.clone(),
            problems => format!("{}: {problems}", assignment.namespace_phase),
        };
        say_once("namespace", &seen, &mut said, screen);
        if assignment.namespace_phase == phase {
            return Ok(assignment);
        }
        sleep(PACE).await;
    }
}

/// Shows a message unless it repeats the last one.
fn say_once(who: &str, what: &str, said: &mut String, screen: &mut Screen<'_>) {
    if said != what {
        screen.now(who, what);
        what.clone_into(said);
    }
}
