//! How every kind of roll-out begins: as a plan that can be shown, and as a record that the loop
//! carries out.

use serde_json::Value;
use slipway_core::access::audit::Actor;
use slipway_core::error::Refusal;
use slipway_core::ids::{ProjectId, Revision, RolloutId};
use slipway_core::rollouts::record::{
    Member, MemberState, Purpose, Rollout, RolloutState, Strategy,
};
use slipway_core::rollouts::rules::{self, StartSnapshot};
use slipway_core::subject::Subject;
use slipway_core::text::Reason;

use super::run::wake;
use crate::kind::NO_REASON;
use crate::{Context, Error};

/// What a roll-out changes, in this order.
#[derive(Debug, Clone)]
pub struct Planned {
    pub rollout: Rollout,
    pub members: Vec<Member>,
}

/// What is particular to a roll-out.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) purpose: Purpose,
    pub(crate) subject: Subject,
    pub(crate) name: String,
    pub(crate) project_id: Option<ProjectId>,
    pub(crate) change: Value,
    pub(crate) strategy: &'a Strategy,
    pub(crate) reason: Option<&'a str>,
}

/// What is particular to a member.
#[derive(Debug)]
pub(crate) struct PlannedMember {
    pub(crate) subject: Subject,
    pub(crate) name: String,
    pub(crate) wave: i32,
    pub(crate) before: Value,
}

impl Planned {
    /// The members in the order of their waves, and within one as they come.
    pub(crate) fn new(
        context: &Context,
        actor: &Actor,
        plan: Plan<'_>,
        mut members: Vec<PlannedMember>,
    ) -> Result<Self, Refusal> {
        let reason = Reason::parse(plan.reason.unwrap_or(NO_REASON))?;
        members.sort_by_key(|member| member.wave);
        let members = members.into_iter().zip(0..).map(|(member, position)| Member {
            subject: member.subject,
            name: member.name,
            wave: member.wave,
            position,
            state: MemberState::Waiting,
            before: member.before,
            changed_at: None,
            message: None,
        });
        let rollout = Rollout {
            id: RolloutId::new(context.entropy.uuid()),
            revision: Revision::FIRST,
            purpose: plan.purpose,
            subject: plan.subject,
            name: plan.name,
            project_id: plan.project_id,
            change: plan.change,
            strategy: plan.strategy.clone(),
            state: RolloutState::Running,
            message: None,
            requested_by: actor.name.clone(),
            reason: reason.as_str().to_owned(),
            requested_at: context.clock.now(),
            ended_at: None,
        };
        Ok(Self { rollout, members: members.collect() })
    }

    /// Starts it; the loop does the rest.
    pub(crate) async fn start(self, context: &Context, actor: &Actor) -> Result<RolloutId, Error> {
        let Self { rollout, members } = self;
        let mut rule = |snapshot: &StartSnapshot| rules::start(snapshot, &rollout, &members, actor);
        context.stores.rollouts.rollout_start(rollout.subject, &mut rule).await?;
        tracing::info!(rollout_id = %rollout.id, members = members.len(), "roll-out started");
        wake(context).await;
        Ok(rollout.id)
    }
}
