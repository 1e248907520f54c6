//! The first kind of roll-out: resources of a blueprint get another version of it. Finds the
//! members, changes one, changes one back, and tells whether one is healthy.

use std::collections::HashMap;

use serde_json::{Value, json};
use slipway_core::access::audit::Actor;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::redeclare::{Corrections, RedeclareSnapshot};
use slipway_core::broker::retry;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::transition::transitions;
use slipway_core::broker::update::{self, Changes};
use slipway_core::catalog::label::{self, LabelSelector};
use slipway_core::catalog::project::Project;
use slipway_core::commit::{Commit, Write};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DeletionId, ResourceId, RolloutId};
use slipway_core::precondition::Expected;
use slipway_core::rollouts::next::{Health, waves};
use slipway_core::rollouts::record::{
    Member, MemberState, Purpose, Rollout, RolloutState, Strategy,
};
use slipway_core::text::{Reason, check_reference};
use slipway_core::time::Timestamp;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::broker::port::{RedeclareKey, Redeclared, ResourceFilter};
use crate::catalog::{blueprints, projects};
use crate::kind;
use crate::ports::store::{self, PAGE_MAX, Page};
use crate::rollouts::run::Begun;
use crate::rollouts::start::{Plan, Planned, PlannedMember};
use crate::{Context, Error};

/// A requested upgrade, unchecked.
#[derive(Debug, Clone, Default)]
pub struct Upgrade {
    /// Slug or id.
    pub blueprint: String,
    /// The version that its resources get.
    pub to: String,
    /// Only resources of this project: name or id.
    pub project: Option<String>,
    /// Only resources whose labels in effect match all of these.
    pub labels: Vec<String>,
    pub strategy: Strategy,
    pub reason: Option<String>,
}

/// Reads what the upgrade would change, and writes nothing.
pub async fn plan(context: &Context, caller: &Caller, input: &Upgrade) -> Result<Planned, Error> {
    let actor = authorise(caller, Operation::RolloutStart)?;
    input.strategy.check()?;
    check_reference("to", &input.to).map_err(Refusal::from)?;
    let (blueprint, version) =
        blueprints::version(context, caller, &input.blueprint, &input.to, false).await?;
    if version.retired_at.is_some() {
        let message = format!(
            "version `{}` of blueprint `{}` is retired; upgrade to another one",
            input.to, blueprint.slug
        );
        return Err(Refusal::new(ErrorKind::BlueprintVersionRetired, message).at("to").into());
    }
    let project = match input.project.clone().or(caller.project.map(|own| own.to_string())) {
        Some(reference) => Some(kind::fetch::<Project>(context, caller, &reference, false).await?),
        None => None,
    };
    let selectors = |field: &'static str, texts: &[String]| {
        let parsed = texts.iter().map(|text| LabelSelector::parse(text));
        let parsed = parsed.collect::<Result<Vec<_>, _>>();
        parsed.map_err(|fault| Refusal::from(fault).at(field))
    };
    let filter = ResourceFilter {
        project: project.as_ref().map(|project| project.id.to_string()),
        labels: selectors("labels", &input.labels)?,
        blueprint: Some(blueprint.id.to_string()),
        ..ResourceFilter::default()
    };
    let of_waves = selectors("waves", &input.strategy.waves)?;
    let mut found = candidates(context, caller, &filter, &input.to, &of_waves).await?;
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let places: Vec<_> = found.iter().map(|(_, place, _)| *place).collect();
    let waves = waves(&places, of_waves.len(), input.strategy.canary);
    let members = found.into_iter().zip(waves).map(|((name, _, snapshot), wave)| PlannedMember {
        subject: snapshot.resource.id.into(),
        name,
        wave,
        before: before(&snapshot),
    });
    let plan = Plan {
        purpose: Purpose::BlueprintUpgrade,
        subject: blueprint.id.into(),
        name: blueprint.slug.to_string(),
        project_id: project.map(|project| project.id),
        change: json!({ "version": input.to }),
        strategy: &input.strategy,
        reason: input.reason.as_deref(),
    };
    Ok(Planned::new(context, &actor, plan, members.collect())?)
}

/// Starts it; the loop does the rest.
pub async fn start(
    context: &Context,
    caller: &Caller,
    input: &Upgrade,
) -> Result<RolloutId, Error> {
    let actor = authorise(caller, Operation::RolloutStart)?;
    plan(context, caller, input).await?.start(context, &actor).await
}

/// Name, the place of the first selector that fits, and the resource.
type Candidate = (String, Option<usize>, ResourceSnapshot);

/// The resources of the filter that have another version of their blueprint.
async fn candidates(
    context: &Context,
    caller: &Caller,
    filter: &ResourceFilter,
    to: &str,
    waves: &[LabelSelector],
) -> Result<Vec<Candidate>, Error> {
    let mut found = Vec::new();
    let mut page = Page { after: None, limit: PAGE_MAX };
    loop {
        let listed = context.stores.broker.resource_list(filter, page).await?;
        let last = listed.last().and_then(|row| match row {
            Ok(snapshot) => Some(snapshot.resource.id),
            Err(corrupt) => corrupt.resource_id,
        });
        let full = listed.len() >= PAGE_MAX as usize;
        let fits = |snapshot: &ResourceSnapshot| {
            snapshot.blueprint.version != to
                && snapshot.resource.deleted_at.is_none()
                // A server is changed by its workspace.
                && snapshot.resource.owner.is_none()
                && !snapshot.attempt.phase().is_deletion()
        };
        // One that cannot be read has a blocker of its own, and is no member.
        let fitting: Vec<_> = listed.into_iter().filter_map(Result::ok).filter(fits).collect();
        let own: Vec<_> = fitting.iter().map(|snapshot| snapshot.resource.project_id).collect();
        let labels = projects::labels(context, caller, &own).await?;
        for snapshot in fitting {
            let of_project = labels.get(&snapshot.resource.project_id).cloned().unwrap_or_default();
            let effective = label::effective(&of_project, &snapshot.resource.labels);
            let fits = |selector: &LabelSelector| {
                effective.get(selector.key.as_str()).is_some_and(|label| {
                    selector.value.as_deref().is_none_or(|value| value == label.value)
                })
            };
            let place = waves.iter().position(fits);
            found.push((snapshot.resource.handle.to_string(), place, snapshot));
        }
        match last {
            Some(last) if full => page.after = Some(last),
            _ => return Ok(found),
        }
    }
}

fn before(snapshot: &ResourceSnapshot) -> Value {
    json!({ "version": snapshot.blueprint.version })
}

/// How the members in work are.
pub(super) async fn observed(
    context: &Context,
    rollout: &Rollout,
    active: Vec<Member>,
) -> Result<(Option<Timestamp>, Vec<(Member, Health)>), store::Error> {
    let ids: Vec<_> = active.iter().map(|member| ResourceId::new(member.subject.id)).collect();
    let loaded = context.stores.broker.resource_load(&ids).await?;
    let mut resources: HashMap<ResourceId, ResourceSnapshot> =
        loaded.into_iter().flatten().map(|found| (found.resource.id, found)).collect();
    let now = resources.values().map(|found| found.now).max();
    let judged = |member: Member| {
        let snapshot = resources.remove(&ResourceId::new(member.subject.id));
        let health = health(&member, &rollout.change, snapshot.as_ref());
        (member, health)
    };
    Ok((now, active.into_iter().map(judged).collect()))
}

/// How a member in work is.
fn health(member: &Member, change: &Value, snapshot: Option<&ResourceSnapshot>) -> Health {
    let wanted = if member.state == MemberState::Reverting { &member.before } else { change };
    let Some(snapshot) = snapshot else { return Health::Gone("it does not exist".to_owned()) };
    let phase = snapshot.attempt.phase();
    if snapshot.resource.deleted_at.is_some() {
        return Health::Gone("it was deleted".to_owned());
    }
    // One that failed is made anew on its way back: the attempt before it is taken down first.
    let follows = snapshot.attempt.correction().is_some();
    if phase.is_deletion() {
        return match follows {
            true => Health::Progressing,
            false => Health::Gone("it is being deleted".to_owned()),
        };
    }
    if snapshot.blueprint.version != wanted["version"].as_str().unwrap_or_default() {
        let version = &snapshot.blueprint.version;
        return Health::Failed(format!("somebody gave it version {version} meanwhile"));
    }
    match phase {
        Phase::Failed => {
            let why = snapshot.attempt.failure_reason().unwrap_or("it is Failed");
            Health::Failed(why.to_owned())
        }
        Phase::Ready if snapshot.update_pending_since().is_none() => Health::Settled,
        _ => Health::Progressing,
    }
}

/// Changes a member, or changes it back, in the commit that records it.
pub(super) async fn begin(
    context: &Context,
    rollout: &Rollout,
    member: &Member,
    actor: &Actor,
) -> Result<Begun, store::Error> {
    let back = rollout.state == RolloutState::RollingBack;
    let wanted = if back { &member.before } else { &rollout.change };
    let version = wanted["version"].as_str().map(str::to_owned);
    let id = ResourceId::new(member.subject.id);
    let key = RedeclareKey { resource: id, version: version.clone(), of: Redeclared::InUse };
    let recorded = |mut commit: Commit, snapshot: &RedeclareSnapshot| {
        let before = (!back).then(|| before(&snapshot.resource));
        commit.writes.push(Write::Rollouts(member.begin(rollout, before)));
        commit
    };
    let changes = Changes { version: version.clone(), ..Changes::default() };
    let mut transitioned = Vec::new();
    let deletion_id = DeletionId::new(context.entropy.uuid());
    let retention = context.settings.deletion.retention;
    let mut rule = |snapshot: &RedeclareSnapshot| {
        let resource = &snapshot.resource;
        // What failed is made anew: nothing is applied to it any more.
        if back && resource.attempt.phase() == Phase::Failed {
            let corrections = Corrections { version: version.clone(), ..Corrections::default() };
            let reason = Reason::parse("its roll-out is rolled back")?;
            let commit = retry::request_corrected(
                snapshot,
                &corrections,
                deletion_id,
                retention,
                &reason,
                actor,
            )?;
            transitioned = transitions(&commit, Some(resource));
            return Ok(recorded(commit, snapshot));
        }
        let updated = update::update(snapshot, &changes, Expected::Any, actor)?;
        Ok(recorded(updated.commit, snapshot))
    };
    let decided = context.stores.broker.decide_redeclaration(&key, &mut rule).await;
    context.meter.transitioned(&transitioned);
    match decided {
        Ok(()) => Ok(Begun::Changed),
        Err(store::Error::NotFound { .. }) => {
            Ok(Begun::Gone("it does not exist any more".to_owned()))
        }
        Err(store::Error::Refused(refusal)) => match refusal.kind {
            // The roll-out or the member was written meanwhile: it is read again.
            ErrorKind::RevisionStale => Ok(Begun::Stale),
            ErrorKind::ResourceNotFound | ErrorKind::Leaving => Ok(Begun::Gone(refusal.message)),
            _ => Ok(Begun::Refused(refusal.message)),
        },
        Err(error) => Err(error),
    }
}
