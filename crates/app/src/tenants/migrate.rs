//! Roll-outs of migrations: the tenants of a profile get what its folder has, a few at a time.
//! A member is changed by making its task due, and healthy when that succeeded.

use std::collections::HashMap;

use serde_json::json;
use slipway_core::commit::Write;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{RolloutId, TenantId};
use slipway_core::rollouts::next::{Health, waves};
use slipway_core::rollouts::record::{Member, Purpose, Rollout, Strategy};
use slipway_core::tenants::job::JobState;
use slipway_core::tenants::profile::TenantProfile;
use slipway_core::tenants::task;
use slipway_core::tenants::tenant::{Tenant, TenantSnapshot};
use slipway_core::time::Timestamp;

use super::port::{TenantFilter, TenantKey};
use super::provision::{self, ListTenants};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::kind;
use crate::ports::store::{self, PAGE_MAX, Page};
use crate::rollouts::run::Begun;
use crate::rollouts::start::{Plan, Planned, PlannedMember};
use crate::{Context, Error};

/// A requested migration, unchecked.
#[derive(Debug, Clone, Default)]
pub struct Migration {
    /// Name or id of a profile.
    pub profile: String,
    /// Only tenants of this project: name or id.
    pub project: Option<String>,
    pub strategy: Strategy,
    /// After the canaries, how many tenants come to their end before the next ones begin.
    pub chunk: Option<u32>,
    pub reason: Option<String>,
}

/// Reads which tenants it would migrate, in which order, and writes nothing.
pub async fn plan(context: &Context, caller: &Caller, input: &Migration) -> Result<Planned, Error> {
    let actor = authorise(caller, Operation::RolloutStart)?;
    input.strategy.check()?;
    if !input.strategy.waves.is_empty() {
        let problem = "select by labels, which tenants do not have; leave them out";
        return Err(Refusal::invalid("waves", problem).into());
    }
    if input.chunk == Some(0) {
        return Err(Refusal::invalid("chunk", "must be at least one tenant").into());
    }
    let profile = kind::fetch::<TenantProfile>(context, caller, &input.profile, false).await?;
    let wanted = ListTenants { project: input.project.as_deref(), ..ListTenants::default() };
    let filter = TenantFilter {
        profile: Some(profile.id),
        state: Some(JobState::Ready),
        ..wanted.filter(context, caller).await?
    };
    let mut found = Vec::new();
    let mut page = Page { after: None, limit: PAGE_MAX };
    loop {
        let listed = provision::list(context, caller, &filter, page).await?;
        page.after = listed.next.map(TenantId::new);
        found.extend(listed.items.into_iter().filter(|tenant| tenant.deletion_id.is_none()));
        if page.after.is_none() {
            break;
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let waves = waves(&vec![None; found.len()], 0, input.strategy.canary);
    let waves = chunks(waves, input.chunk);
    let members = found.iter().zip(waves).map(|(tenant, wave)| PlannedMember {
        subject: tenant.id.into(),
        name: tenant.name.to_string(),
        wave,
        before: before(tenant),
    });
    let plan = Plan {
        purpose: Purpose::TenantMigration,
        subject: profile.id.into(),
        name: profile.name.to_string(),
        project_id: filter.project,
        change: json!({}),
        strategy: &input.strategy,
        reason: input.reason.as_deref(),
    };
    Ok(Planned::new(context, &actor, plan, members.collect())?)
}

/// Waves of so many members each after the canaries, which are in the first one.
fn chunks(waves: Vec<i32>, chunk: Option<u32>) -> Vec<i32> {
    let Some(chunk) = chunk.and_then(|chunk| usize::try_from(chunk).ok()) else { return waves };
    let canaries = waves.iter().filter(|wave| **wave == 0).count();
    let of = |(n, wave): (usize, i32)| match wave {
        0 => 0,
        _ => i32::try_from((n - canaries) / chunk).map_or(i32::MAX, |wave| wave.saturating_add(1)),
    };
    waves.into_iter().enumerate().map(of).collect()
}

/// Starts it; the loop does the rest.
pub async fn start(
    context: &Context,
    caller: &Caller,
    input: &Migration,
) -> Result<RolloutId, Error> {
    let actor = authorise(caller, Operation::RolloutStart)?;
    plan(context, caller, input).await?.start(context, &actor).await
}

fn before(tenant: &Tenant) -> serde_json::Value {
    json!({ "version": tenant.version })
}

/// How the members in work are.
pub(crate) async fn observed(
    context: &Context,
    active: Vec<Member>,
) -> Result<(Option<Timestamp>, Vec<(Member, Health)>), store::Error> {
    let ids: Vec<_> = active.iter().map(|member| TenantId::new(member.subject.id)).collect();
    let loaded = context.stores.tenants.tenant_load(&ids).await?;
    let found: HashMap<_, _> = loaded.iter().map(|one| (one.id.as_uuid(), one)).collect();
    let judged = |member: Member| {
        let health = task::health(found.get(&member.subject.id).copied());
        (member, health)
    };
    Ok((None, active.into_iter().map(judged).collect()))
}

/// Makes the task of a member due, in the commit that records it.
pub(crate) async fn begin(
    context: &Context,
    rollout: &Rollout,
    member: &Member,
) -> Result<Begun, store::Error> {
    let mut rule = |snapshot: &TenantSnapshot| {
        let mut commit = task::migrate(snapshot)?;
        let before = snapshot.tenant.as_ref().map(before);
        commit.writes.push(Write::Rollouts(member.begin(rollout, before)));
        Ok(commit)
    };
    let key = TenantKey::Existing(TenantId::new(member.subject.id));
    match context.stores.kind::<Tenant>().decide(&key, &mut rule).await {
        Ok(()) => {
            context.wakes.tenant_tasks.notify_one();
            Ok(Begun::Changed)
        }
        Err(store::Error::Refused(refusal)) => match refusal.kind {
            // The roll-out or the member was written meanwhile: it is read again.
            ErrorKind::RevisionStale => Ok(Begun::Stale),
            _ => Ok(Begun::Gone(refusal.message)),
        },
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_after_the_canaries() {
        let of =
            |tenants: usize, canary, chunk| chunks(waves(&vec![None; tenants], 0, canary), chunk);
        assert_eq!(of(5, 1, None), [0, 1, 1, 1, 1]);
        assert_eq!(of(6, 1, Some(2)), [0, 1, 1, 2, 2, 3]);
        assert_eq!(of(5, 0, Some(2)), [1, 1, 2, 2, 3]);
        assert_eq!(of(3, 2, Some(1)), [0, 0, 1]);
        assert_eq!(of(2, 5, Some(1)), [0, 0]);
        assert_eq!(of(3, 1, Some(u32::MAX)), [0, 1, 1]);
    }
}
