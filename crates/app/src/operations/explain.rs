//! Explains why something is where it is: one answer from store, registry, last
//! observation and deadlines, for every kind. This file reads; core composes
//! the answers.

mod fleet;
mod tenants;
mod topology;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::{Value, json};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::project::Project;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{
    ClusterId, InvalidId, ProjectId, ProvisionedResourceId, ResourceId, RolloutId,
};
use slipway_core::operations::explain::{self, ClusterFacts, Timeouts};
use slipway_core::operations::explanation::{AttemptLine, ExplainedKind, Explanation};
use slipway_core::operations::reference;
use slipway_core::placement::cluster::Cluster;
use slipway_core::rollouts::record::MemberState::{Changing, Failed, RevertFailed, Reverting};
use slipway_core::subject::SubjectKind;
use slipway_render::cloud_tags::CloudTags;
use slipway_render::crossplane;
use uuid::Uuid;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach;
use crate::broker::port::{AttemptFilter, ResourceFilter};
use crate::broker::read::{self, RecentHistory, recent_history};
use crate::deletion::leaks;
use crate::deletion::leaks::Finder;
use crate::kind;
use crate::nodes::tokens;
use crate::ports::store::{self, PAGE_MAX, Page};
use crate::{Context, Error, deletion, nodes, rollouts};

/// How many subjects of each kind are named if a reference fits several.
const FITTING: u32 = 3;

/// Members of a roll-out that one explanation shows, of each state that matters.
const SHOWN_MEMBERS: u32 = 5;

/// How many attempts of a resource are read, and how many blocked ones of a
/// project or cluster are named; the counts cover all.
const LINES: u32 = 50;

/// Explains one thing of this kind: a project, a cluster, a roll-out and what is of Fleet by name
/// or id, the rest by id.
/// The beginning of an id will do if it fits nothing else of the kind.
pub async fn explain(
    context: &Context,
    caller: &Caller,
    kind: &str,
    reference: &str,
) -> Result<Explanation, Error> {
    let kind = ExplainedKind::parse_field("kind", kind)?;
    let reference = match kind {
        ExplainedKind::Attempt => reference::without_prefix(reference),
        _ => reference,
    };
    let found = of_kind(context, caller, kind, reference).await;
    let missing = reference::missing(kind, reference);
    match (&found, reference::ids_from(reference)) {
        // No id or name of its kind: it may be the beginning of an id.
        (Err(error), Some(ids))
            if error.kind() == ErrorKind::InvalidInput || error.kind() == missing.kind =>
        {
            let mut begun = subjects(context, caller, &ids).await?;
            begun.retain(|(of, _)| *of == kind);
            let (kind, id) = reference::only(reference, &begun)?.ok_or(missing)?;
            of_kind(context, caller, kind, &id.to_string()).await
        }
        _ => found,
    }
}

/// Explains whatever this names: anything by its id or the beginning of it, an attempt also
/// by the name of its composite, a resource by its handle, which comes first.
pub async fn any(
    context: &Context,
    caller: &Caller,
    reference: &str,
    project: Option<&str>,
) -> Result<Explanation, Error> {
    authorise(caller, Operation::ResourceRead)?;
    let mut found = match Uuid::try_parse(reference) {
        Ok(_) => Vec::new(),
        Err(_) => handles(context, caller, reference, project).await?,
    };
    let id = reference::without_prefix(reference);
    let whole = Uuid::try_parse(id).ok().map(|id| id..=id);
    if found.is_empty()
        && let Some(ids) = whole.or_else(|| reference::ids_from(id))
    {
        found = subjects(context, caller, &ids).await?;
    }
    let (kind, id) = reference::only(reference, &found)?.ok_or_else(|| {
        let message = format!("nothing has the handle or the id `{reference}`; check it");
        Refusal::new(ErrorKind::ResourceNotFound, message)
    })?;
    of_kind(context, caller, kind, &id.to_string()).await
}

/// The resources of this handle that are not deleted, or the newest that is.
async fn handles(
    context: &Context,
    caller: &Caller,
    handle: &str,
    project: Option<&str>,
) -> Result<Vec<(ExplainedKind, Uuid)>, Error> {
    let mut filter = ResourceFilter {
        project: project.map(str::to_owned),
        handle: Some(handle.to_owned()),
        ..ResourceFilter::default()
    };
    let subject = |row: &ResourceSnapshot| (ExplainedKind::Resource, row.resource.id.as_uuid());
    let mut page = Page { after: None, limit: FITTING };
    let live = read::resources(context, caller, &filter, page).await?;
    // A quarantined row is named by its attempt.
    let quarantined = live.quarantined.iter().map(|id| (ExplainedKind::Attempt, *id));
    let live: Vec<_> = live.iter().map(subject).chain(quarantined).collect();
    if !live.is_empty() {
        return Ok(live);
    }
    filter.show_deleted = true;
    page.limit = PAGE_MAX;
    let mut newest = None;
    // Ids grow with time, and lists are ordered by them.
    loop {
        let deleted = read::resources(context, caller, &filter, page).await?;
        newest = deleted.last().map(subject).or(newest);
        page.after = deleted.next.map(ResourceId::new);
        if page.after.is_none() {
            return Ok(newest.into_iter().collect());
        }
    }
}

/// What the caller may see with an id in this range.
async fn subjects(
    context: &Context,
    caller: &Caller,
    ids: &RangeInclusive<Uuid>,
) -> Result<Vec<(ExplainedKind, Uuid)>, Error> {
    authorise(caller, Operation::ResourceRead)?;
    let mut found = context.stores.access.id_find(ids, caller.project, FITTING).await?;
    let may = |(kind, _): &(ExplainedKind, Uuid)| {
        let operation = match kind {
            ExplainedKind::Token => Operation::TokenRead,
            ExplainedKind::Leak => Operation::LeakRead,
            _ => return true,
        };
        authorise(caller, operation).is_ok()
    };
    found.retain(may);
    Ok(found)
}

async fn of_kind(
    context: &Context,
    caller: &Caller,
    kind: ExplainedKind,
    reference: &str,
) -> Result<Explanation, Error> {
    match kind {
        ExplainedKind::Resource => resource(context, caller, id(reference)?).await,
        ExplainedKind::Attempt => one_attempt(context, caller, id(reference)?).await,
        ExplainedKind::Node => node(context, caller, reference).await,
        ExplainedKind::Deletion => deletion(context, caller, reference).await,
        ExplainedKind::Project => project(context, caller, reference).await,
        ExplainedKind::Cluster => cluster(context, caller, reference).await,
        ExplainedKind::Token => token(context, caller, reference).await,
        ExplainedKind::Leak => leak(context, caller, reference).await,
        ExplainedKind::Rollout => rollout(context, caller, reference).await,
        ExplainedKind::Stack => fleet::stack(context, caller, reference).await,
        ExplainedKind::Agent => fleet::agent(context, caller, reference).await,
        ExplainedKind::Generator => fleet::generator(context, caller, reference).await,
        ExplainedKind::Tenant => tenants::tenant(context, caller, reference).await,
        ExplainedKind::Job => tenants::job(context, caller, reference).await,
        ExplainedKind::Workspace => topology::workspace(context, caller, reference).await,
    }
}

pub async fn resource(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
) -> Result<Explanation, Error> {
    authorise(caller, Operation::ResourceRead)?;
    let missing = || {
        let text = format!("there is no resource {id}; check the id");
        Refusal::new(ErrorKind::ResourceNotFound, text).into()
    };
    reach::reach(context, caller, Owned::Resource(id), missing).await?;
    of_resource(context, id).await?.ok_or_else(missing)
}

/// The caller must have checked that the resource is in reach.
async fn of_resource(context: &Context, id: ResourceId) -> Result<Option<Explanation>, Error> {
    let attempts =
        attempts(context, AttemptFilter { resource: Some(id), ..AttemptFilter::default() }).await?;
    match context.stores.broker.resource_fetch(id).await {
        Ok(None) => Ok(None),
        Ok(Some(snapshot)) => {
            let history = recent_history(context, snapshot.attempt.id()).await?;
            let timeouts = timeouts(context);
            let mut found = explain::resource(&snapshot, &attempts, timeouts);
            found.facts.extend(tag_facts(&snapshot));
            Ok(Some(with(history, found)))
        }
        // A quarantined row is the most likely to need an explanation.
        Err(store::Error::Corrupt { id, reason }) => {
            let Some(current) = attempts.iter().find(|line| line.id.as_uuid() == id) else {
                return Err(store::Error::Corrupt { id, reason }.into());
            };
            let history = recent_history(context, current.id).await?;
            Ok(Some(with(history, explain::quarantined(current, &reason))))
        }
        Err(error) => Err(error.into()),
    }
}

/// The current attempt is explained as its resource.
async fn one_attempt(
    context: &Context,
    caller: &Caller,
    id: ProvisionedResourceId,
) -> Result<Explanation, Error> {
    authorise(caller, Operation::ResourceRead)?;
    let missing = || Error::from(reference::missing(ExplainedKind::Attempt, &id.to_string()));
    let line = attempt(context, id).await?.ok_or_else(missing)?;
    reach::reach(context, caller, Owned::Resource(line.resource_id), missing).await?;
    if is_current(context, &line).await? {
        return of_resource(context, line.resource_id).await?.ok_or_else(missing);
    }
    let history = recent_history(context, id).await?;
    Ok(with(history, explain::attempt(&line)))
}

/// Whether it is its resource's own.
async fn is_current(context: &Context, line: &AttemptLine) -> Result<bool, Error> {
    let of = AttemptFilter {
        resource: Some(line.resource_id),
        in_use: true,
        ..AttemptFilter::default()
    };
    let current = context.stores.broker.attempt_lines(of, 1).await?;
    Ok(current.first().is_some_and(|current| current.id == line.id))
}

/// What the labels become in the cloud, and which are skipped and why.
fn tag_facts(snapshot: &ResourceSnapshot) -> impl Iterator<Item = (&'static str, Value)> {
    let CloudTags { tags, skipped } = crossplane::cloud_tags(snapshot);
    let reasons = skipped.iter().map(|label| (label.key.as_str(), label.reason.text()));
    let skipped: BTreeMap<_, _> = reasons.collect();
    let facts = [
        ("cloud_tags", (!tags.is_empty()).then(|| json!(tags))),
        ("labels_without_tag", (!skipped.is_empty()).then(|| json!(skipped))),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// The explanation with this history, oldest first.
fn with(history: RecentHistory, explanation: Explanation) -> Explanation {
    let RecentHistory { lines, has_older } = history;
    Explanation {
        history: lines.into_iter().rev().collect(),
        has_older_history: has_older,
        ..explanation
    }
}

async fn node(context: &Context, caller: &Caller, reference: &str) -> Result<Explanation, Error> {
    let (node, _) = nodes::read::node(context, caller, id(reference)?).await?;
    let of = AttemptFilter { resource: Some(node.resource_id), ..AttemptFilter::default() };
    let attempts = attempts(context, of).await?;
    // Newest first.
    let current = attempts
        .iter()
        .find(|line| line.in_use)
        .is_some_and(|line| line.id == node.provisioned_resource_id);
    let resource = match current {
        true => of_resource(context, node.resource_id).await?,
        false => None,
    };
    let now = context.clock.now();
    Ok(explain::node(&node, now, &attempts, resource.as_ref()))
}

/// By its id, or by the name of what its members belong to.
async fn rollout(
    context: &Context,
    caller: &Caller,
    reference: &str,
) -> Result<Explanation, Error> {
    let kind = SubjectKind::Rollout;
    let found = crate::access::reference::find(context, caller, kind, reference).await?;
    let missing = || reference::missing(ExplainedKind::Rollout, reference);
    let id = RolloutId::new(found.ok_or_else(missing)?);
    let (rollout, progress) = rollouts::read::rollout(context, caller, id).await?;
    let mut shown = Vec::new();
    for state in [Changing, Reverting, Failed, RevertFailed] {
        let page = Page { after: None, limit: SHOWN_MEMBERS };
        shown.extend(rollouts::read::members(context, caller, id, Some(state), page).await?);
    }
    Ok(explain::rollout(&rollout, &progress, &shown))
}

async fn deletion(
    context: &Context,
    caller: &Caller,
    reference: &str,
) -> Result<Explanation, Error> {
    let deletion = deletion::read::deletion(context, caller, id(reference)?).await?;
    let target = deletion.target.id;
    let of = match deletion.target.kind {
        SubjectKind::Resource => Some(AttemptFilter {
            resource: Some(ResourceId::new(target)),
            ..AttemptFilter::default()
        }),
        SubjectKind::ProvisionedResource => Some(AttemptFilter {
            attempt: Some(ProvisionedResourceId::new(target)),
            ..AttemptFilter::default()
        }),
        SubjectKind::Project => Some(AttemptFilter {
            project: Some(ProjectId::new(target)),
            ..AttemptFilter::default()
        }),
        _ => None,
    };
    let mut attempts = match of {
        Some(of) => attempts(context, of).await?,
        None => Vec::new(),
    };
    let of_one = deletion.target.kind != SubjectKind::Project;
    if !of_one {
        attempts.retain(|line| line.absence_proven_at.is_none() && line.abandoned_at.is_none());
    }
    let of_attempt = deletion.target.kind == SubjectKind::ProvisionedResource;
    let resource = match attempts.first().filter(|_| of_one) {
        // A surge takes it down, and another one is its resource's own.
        Some(line) if of_attempt && !is_current(context, line).await? => {
            Some(explain::attempt(line))
        }
        Some(line) => of_resource(context, line.resource_id).await?,
        None => None,
    };
    let blockers = context.stores.deletion.deletion_blockers(deletion.id).await?;
    Ok(explain::deletion(&deletion, &attempts, blockers, resource.as_ref()))
}

async fn project(
    context: &Context,
    caller: &Caller,
    reference: &str,
) -> Result<Explanation, Error> {
    let project = kind::fetch::<Project>(context, caller, reference, true).await?;
    let assignment = context.stores.placement.cluster_assignment_fetch(project.id).await?;
    let cluster = match &assignment {
        Some(placed) => {
            context.stores.kind::<Cluster>().fetch(&placed.cluster_id.to_string(), false).await?
        }
        None => None,
    };
    let of = AttemptFilter { project: Some(project.id), ..AttemptFilter::default() };
    let facts = facts(context, of, cluster.as_ref().map(|cluster| cluster.id)).await?;
    let deletion = match project.deletion_id {
        Some(id) => context.stores.deletion.deletion_fetch(id).await?,
        None => None,
    };
    let (placed, deletion) = (assignment.as_ref(), deletion.as_ref());
    Ok(explain::project(&project, placed, cluster.as_ref(), deletion, &facts))
}

async fn cluster(
    context: &Context,
    caller: &Caller,
    reference: &str,
) -> Result<Explanation, Error> {
    let cluster = kind::fetch::<Cluster>(context, caller, reference, true).await?;
    // A caller bound to a project sees only its own resources on the cluster.
    let of = AttemptFilter {
        partition: Some(cluster.id.into()),
        project: caller.project,
        ..AttemptFilter::default()
    };
    let facts = facts(context, of, Some(cluster.id)).await?;
    Ok(explain::cluster(&cluster, &facts))
}

async fn token(context: &Context, caller: &Caller, reference: &str) -> Result<Explanation, Error> {
    let token = tokens::fetch(context, caller, id(reference)?).await?;
    let attempt = attempt(context, token.provisioned_resource_id).await?;
    Ok(explain::token(&token, context.clock.now(), attempt.as_ref()))
}

async fn leak(context: &Context, caller: &Caller, reference: &str) -> Result<Explanation, Error> {
    let leak = leaks::leak(context, caller, id(reference)?).await?;
    let attempt = match leak.provisioned_resource_id() {
        Some(id) => attempt(context, id).await?,
        None => None,
    };
    let tasks = context.stores.operations.task_list().await?;
    let task = leak.cluster_id.map(Finder::task);
    let observe = tasks.iter().find(|found| Some(&found.name) == task.as_ref());
    Ok(explain::leak(&leak, attempt.as_ref(), observe.map(|task| task.due_at)))
}

async fn facts(
    context: &Context,
    of: AttemptFilter,
    cluster: Option<ClusterId>,
) -> Result<ClusterFacts, Error> {
    let store = &context.stores;
    let partitions = store.broker.partition_list_overdue().await?;
    let partition = cluster.map(Into::into);
    let holders = match partition {
        Some(partition) => store.broker.partition_holders(partition).await?,
        None => Vec::new(),
    };
    let lag = partitions.iter().find(|overdue| partition == Some(overdue.partition));
    Ok(ClusterFacts {
        now: context.clock.now(),
        lag: lag.map(|overdue| overdue.overdue),
        holders,
        counts: store.broker.phase_counts(of).await?,
        blocked: attempts(context, AttemptFilter { blocked: true, ..of }).await?,
        claimed_within: context.settings.claimed_within,
    })
}

async fn attempts(context: &Context, filter: AttemptFilter) -> Result<Vec<AttemptLine>, Error> {
    Ok(context.stores.broker.attempt_lines(filter, LINES).await?)
}

async fn attempt(
    context: &Context,
    id: ProvisionedResourceId,
) -> Result<Option<AttemptLine>, Error> {
    let found =
        attempts(context, AttemptFilter { attempt: Some(id), ..AttemptFilter::default() }).await?;
    Ok(found.into_iter().next())
}

fn timeouts(context: &Context) -> Timeouts {
    let settings = &context.settings;
    Timeouts { deadlines: settings.deadlines, claimed_within: settings.claimed_within }
}

fn id<T: std::str::FromStr<Err = InvalidId>>(reference: &str) -> Result<T, Refusal> {
    reference.parse().map_err(|error: InvalidId| Refusal::from(error).at("id"))
}
