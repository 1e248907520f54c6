//! Roll-outs of stacks: agents get the newest object. They are begun by whoever submits it, see
//! [`slipway_core::fleet::rollout`]; an agent is changed when its offer has the object.

use std::collections::HashMap;

use slipway_core::access::audit::Actor;
use slipway_core::commit::{Commit, Write};
use slipway_core::error::ErrorKind;
use slipway_core::fleet::rollout;
use slipway_core::ids::{AgentId, StackId};
use slipway_core::rollouts::next::Health;
use slipway_core::rollouts::record::{Member, Rollout};
use slipway_core::rollouts::rules::RolloutSnapshot;
use slipway_core::time::Timestamp;

use crate::Context;
use crate::ports::store;
use crate::rollouts::run::Begun;

/// How the members in work are.
pub(super) async fn observed(
    context: &Context,
    rollout: &Rollout,
    active: Vec<Member>,
) -> Result<(Option<Timestamp>, Vec<(Member, Health)>), store::Error> {
    let ids: Vec<_> = active.iter().map(|member| AgentId::new(member.subject.id)).collect();
    let stack = StackId::new(rollout.subject.id);
    let (now, facts) = context.stores.fleet.rollout_facts(stack, &ids).await?;
    let facts: HashMap<AgentId, _> = facts.iter().map(|fact| (fact.agent_id, fact)).collect();
    let wait = rollout.strategy.wait_for_health;
    let judged = |member: Member| {
        let fact = facts.get(&AgentId::new(member.subject.id)).copied();
        let health = rollout::health(&member, fact, wait);
        (member, health)
    };
    Ok((Some(now), active.into_iter().map(judged).collect()))
}

/// Lets an agent have the newest object.
pub(super) async fn begin(
    context: &Context,
    rollout: &Rollout,
    member: &Member,
    _actor: &Actor,
) -> Result<Begun, store::Error> {
    let mut rule = |_: &RolloutSnapshot| {
        let write = Write::Rollouts(member.begin(rollout, None));
        Ok(Commit { writes: vec![write], ..Commit::default() })
    };
    match context.stores.rollouts.rollout_decide(rollout.id, &mut rule).await {
        Ok(()) => Ok(Begun::Changed),
        // The roll-out or the member was written meanwhile: it is read again.
        Err(store::Error::Refused(refusal)) if refusal.kind == ErrorKind::RevisionStale => {
            Ok(Begun::Stale)
        }
        Err(error) => Err(error),
    }
}
