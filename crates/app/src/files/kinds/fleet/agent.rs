//! Agents, by `NAME@CLUSTER`. The text of the key of a new one is in the answer to the apply that
//! made it, and nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::Terms;
use slipway_core::fleet::agent::{Agent, AgentChange, AgentStatus};
use slipway_core::ids::{AgentId, ProjectId};
use slipway_core::precondition::Expected;
use slipway_core::secret::Secret;
use uuid::Uuid;

use super::rows::spec;
use super::sets::{self, Difference, Overtaken, TagChanges, Tags, list, project_of};
use crate::Error;
use crate::files::kind::{Applier, Desired, Document, FileKind, Live};
use crate::fleet::agents::{self, CreateAgent};
use crate::fleet::links;

pub(in crate::files) struct Agents;

/// The name of an agent and of its cluster.
fn parts(address: &Address) -> Option<(&str, &str)> {
    let parts = address.name.rsplit_once('@');
    parts.filter(|(name, cluster)| !name.is_empty() && !cluster.is_empty())
}

fn texts(document: &Document, name: &str) -> Vec<String> {
    let items = document.spec.get(name).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| Some(item.as_str()?.to_owned())).collect()
}

#[async_trait]
impl FileKind for Agents {
    fn missing(&self) -> ErrorKind {
        ErrorKind::AgentNotFound
    }

    fn terms(&self) -> Terms {
        let none = || json!([]);
        let defaults = spec([
            ("active", json!(false)),
            ("generators", none()),
            ("targets", none()),
            ("labels", none()),
        ]);
        Terms { defaults, ..Terms::default() }
    }

    fn needs(&self, document: &Document) -> Vec<Address> {
        let project = document.address.project.clone().unwrap_or_default();
        let of = |kind: DocumentKind, field: &str| {
            let names = texts(document, field).into_iter();
            names.map(|name| Address::new(kind, name).of_project(&project)).collect::<Vec<_>>()
        };
        let mut needs = vec![Address::new(DocumentKind::Project, &project)];
        needs.extend(of(DocumentKind::Generator, "generators"));
        needs.extend(of(DocumentKind::Stack, "targets"));
        needs
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        let projects = by.projects(wanted).await?;
        let names = wanted.iter().filter_map(|address| Some(parts(address)?.0.to_owned()));
        let found = by.named::<Agent>(names).await?;
        let ids: Vec<Uuid> = found.iter().map(|agent| agent.id.as_uuid()).collect();
        let mut tags = Tags::read(by, &ids).await?;
        let mut linked: BTreeMap<(AgentId, bool), Vec<String>> = BTreeMap::new();
        if !ids.is_empty() {
            for link in by.context.stores.fleet.links_of(&ids).await? {
                linked.entry((link.agent_id, link.is_target)).or_default().push(link.name);
            }
        }
        let live = |address: &Address| {
            let project = *projects.get(address.project.as_ref()?)?;
            let (name, cluster) = parts(address)?;
            let is_it = |one: &&Agent| {
                one.name.as_str() == name
                    && one.cluster_name.as_str() == cluster
                    && one.project_id == project
            };
            let agent = found.iter().find(is_it)?;
            let mut fields = spec([("active", json!(agent.status == AgentStatus::Active))]);
            for (field, is_target) in [("generators", false), ("targets", true)] {
                let names = linked.remove(&(agent.id, is_target)).unwrap_or_default();
                fields.extend(list(field, names));
            }
            fields.extend(tags.fields(agent.id.as_uuid()));
            let live = Live::at(address, agent, fields).within(Some(project));
            Some(live.leaving(agent.deletion_id))
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    async fn create(&self, by: Applier<'_>, document: &Document) -> Result<Option<Secret>, Error> {
        let Applier { context, caller } = by;
        let (name, cluster) = parts(&document.address).ok_or_else(|| {
            let problem = "must be the name of the agent and of its cluster, such as `edge@berlin`";
            Refusal::invalid("metadata.name", problem)
        })?;
        let input = CreateAgent {
            project: document.address.project.clone(),
            name: name.to_owned(),
            cluster_name: cluster.to_owned(),
            generators: BTreeSet::new(),
        };
        let (id, key) = agents::create(context, caller, input, None).await?;
        if document.spec.get("active").and_then(Value::as_bool) == Some(true) {
            activate(by, id, true, Expected::Any).await?;
        }
        let project = project_of(by, &document.address).await?;
        let links =
            Links::of(["generators", "targets"].map(|name| Difference::of_new(document, name)));
        let mut overtaken = Overtaken::default();
        links.add(by, id, project, &mut overtaken).await?;
        TagChanges::of_new(document).add(by, id.into(), &mut overtaken).await?;
        overtaken.end()?;
        Ok(Some(key))
    }

    /// What comes first, so that an agent that keeps a stack by another link is never told to
    /// remove it.
    async fn change(&self, by: Applier<'_>, wanted: Desired<'_>) -> Result<(), Error> {
        let (id, project) = (AgentId::new(wanted.live.subject_id), wanted.live.project_id);
        if let Some(active) = wanted.value("active").and_then(Value::as_bool) {
            activate(by, id, active, wanted.live.expected()).await?;
        }
        let links = Links::of(["generators", "targets"].map(|name| Difference::of(&wanted, name)));
        let (tags, mut overtaken) = (TagChanges::of(&wanted), Overtaken::default());
        links.add(by, id, project, &mut overtaken).await?;
        tags.add(by, id.into(), &mut overtaken).await?;
        links.remove(by, id, project, &mut overtaken).await?;
        tags.remove(by, id.into(), &mut overtaken).await?;
        overtaken.end()
    }
}

/// Registrations and targets that come or go.
struct Links {
    generators: Difference,
    targets: Difference,
}

impl Links {
    fn of([generators, targets]: [Difference; 2]) -> Self {
        Self { generators, targets }
    }

    /// A target needs its registration.
    async fn add(
        &self,
        by: Applier<'_>,
        id: AgentId,
        project: Option<ProjectId>,
        overtaken: &mut Overtaken,
    ) -> Result<(), Error> {
        let Applier { context, caller } = by;
        for generator in sets::generators(by, project, &self.generators.added).await? {
            overtaken.unless(links::register(context, caller, id, generator).await)?;
        }
        for stack in sets::stacks(by, project, &self.targets.added).await? {
            overtaken.unless(links::target(context, caller, id, stack).await)?;
        }
        Ok(())
    }

    async fn remove(
        &self,
        by: Applier<'_>,
        id: AgentId,
        project: Option<ProjectId>,
        overtaken: &mut Overtaken,
    ) -> Result<(), Error> {
        let Applier { context, caller } = by;
        for stack in sets::stacks(by, project, &self.targets.removed).await? {
            overtaken.unless(links::untarget(context, caller, id, stack).await)?;
        }
        for generator in sets::generators(by, project, &self.generators.removed).await? {
            overtaken.unless(links::unregister(context, caller, id, generator).await)?;
        }
        Ok(())
    }
}

async fn activate(
    Applier { context, caller }: Applier<'_>,
    id: AgentId,
    active: bool,
    expected: Expected,
) -> Result<(), Error> {
    let status = if active { AgentStatus::Active } else { AgentStatus::Inactive };
    let change = AgentChange { status: Some(status), ..AgentChange::default() };
    agents::update(context, caller, id, &change, expected).await
}
