//! What the loop over roll-outs does: observes the members in work, decides, records, and
//! begins the next ones. Each member is changed in a transaction of its own, which records
//! that it was.

use std::sync::Arc;

use slipway_core::access::audit::Actor;
use slipway_core::commit::Commit;
use slipway_core::ids::{Revision, RolloutId};
use slipway_core::rollouts::next::{MemberChange, Next, Observed, next};
use slipway_core::rollouts::record::{Member, MemberState, Purpose, Rollout};
use slipway_core::rollouts::rules::{self, RolloutSnapshot};

use crate::Context;
use crate::permits::Permits;
use crate::ports::store::Error;
use crate::rollouts::port::InWork;
use crate::rollouts::{stack, upgrade};
use crate::tenants::migrate;
use crate::topology::rollout as servers;

/// Roll-outs that one pass looks at.
const MOVING: u32 = 100;

/// See the module.
#[derive(Debug, Clone)]
pub struct Runner {
    context: Context,
    permits: Arc<Permits>,
    actor: Actor,
}

/// How a pass ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Members that were changed or came to their end, and roll-outs that entered a state.
    pub advanced: usize,
    /// Members are in work.
    pub waiting: bool,
    /// A freeze or observe-only withholds everything.
    pub withheld: bool,
}

/// How changing a member ended.
#[derive(Debug)]
pub(crate) enum Begun {
    Changed,
    /// It is read again.
    Stale,
    Gone(String),
    Refused(String),
    /// Refused, and members in work may change that.
    Waits(String),
}

impl Runner {
    /// The name of the loop, and of its periodic task.
    pub const TASK: &'static str = "rollouts";

    pub fn new(context: Context, permits: Arc<Permits>) -> Self {
        Self { context, permits, actor: Actor::new(format!("loop:{}", Self::TASK)) }
    }

    pub const fn context(&self) -> &Context {
        &self.context
    }

    pub async fn pass(&self) -> Result<Passed, Error> {
        let mut passed = Passed::default();
        for id in self.context.stores.rollouts.rollout_moving(MOVING).await? {
            match self.advance(id, &mut passed).await {
                Ok(()) => {}
                Err(error) if error.is_logged() => return Err(error),
                // One that cannot be read holds no other.
                Err(error) => {
                    tracing::warn!(rollout_id = %id, %error, "a roll-out does not go on");
                    passed.waiting = true;
                }
            }
        }
        if passed.advanced > 0 {
            self.context.wakes.wake_offers();
        }
        Ok(passed)
    }

    async fn advance(&self, id: RolloutId, passed: &mut Passed) -> Result<(), Error> {
        // While nothing is applied, nobody becomes healthy, and no time counts against them.
        let Ok(permit) = self.permits.enter(&self.context.stores).await? else {
            passed.withheld = true;
            return Ok(());
        };
        let Some(found) = self.context.stores.rollouts.rollout_in_work(id).await? else {
            return Ok(());
        };
        let rollout = found.rollout.clone();
        let observed = self.observed(found).await?;
        let next = next(&observed);
        let mut in_work = observed.active.len() - next.ended.len();
        if !next.ended.is_empty() || next.enter.is_some() {
            self.record(&rollout, &next).await?;
            passed.advanced += next.ended.len() + usize::from(next.enter.is_some());
            // A change of state has a revision of its own: the next pass reads it.
            if next.enter.is_some() {
                return Ok(());
            }
        }
        passed.waiting = true;
        for member in &next.begin {
            let begun = match self.changed(&rollout, member, permit.revision()).await? {
                Begun::Waits(_) if in_work > 0 => return Ok(()),
                begun => begun,
            };
            if !self.begun(&rollout, member, begun).await? {
                return Ok(());
            }
            passed.advanced += 1;
            in_work += 1;
        }
        Ok(())
    }

    async fn observed(&self, found: InWork) -> Result<Observed, Error> {
        let InWork { rollout, active, queue, failed, first_failed } = found;
        let (now, active) = match rollout.purpose {
            Purpose::BlueprintUpgrade => upgrade::observed(&self.context, &rollout, active).await?,
            Purpose::StackObject => stack::observed(&self.context, &rollout, active).await?,
            Purpose::TenantMigration => migrate::observed(&self.context, active).await?,
            Purpose::WorkspaceChange => servers::observed(&self.context, &rollout, active).await?,
        };
        let now = now.unwrap_or_else(|| self.context.clock.now());
        Ok(Observed { now, active, queue, failed, first_failed, rollout })
    }

    /// Records what was decided about the roll-out as it was read.
    async fn record(&self, rollout: &Rollout, next: &Next) -> Result<(), Error> {
        let mut rule = |snapshot: &RolloutSnapshot| {
            if snapshot.rollout.revision != rollout.revision {
                return Ok(Commit::default());
            }
            Ok(rules::record(snapshot, next, &self.actor))
        };
        self.context.stores.rollouts.rollout_decide(rollout.id, &mut rule).await
    }

    async fn changed(
        &self,
        rollout: &Rollout,
        member: &Member,
        mode: Revision,
    ) -> Result<Begun, Error> {
        let Self { context, actor, .. } = self;
        match rollout.purpose {
            Purpose::BlueprintUpgrade => upgrade::begin(context, rollout, member, actor).await,
            Purpose::StackObject => stack::begin(context, rollout, member, actor).await,
            Purpose::TenantMigration => migrate::begin(context, rollout, member).await,
            Purpose::WorkspaceChange => servers::begin(context, rollout, member, mode, actor).await,
        }
    }

    /// Whether to go on with the next one.
    async fn begun(&self, rollout: &Rollout, member: &Member, begun: Begun) -> Result<bool, Error> {
        let (to, message) = match begun {
            Begun::Changed => return Ok(true),
            Begun::Stale => return Ok(false),
            Begun::Gone(why) => (MemberState::Gone, why),
            Begun::Refused(why) if rollout.state.is_back() => (MemberState::RevertFailed, why),
            Begun::Refused(why) | Begun::Waits(why) => (MemberState::Failed, why),
        };
        let change = MemberChange { member: member.subject, to, message: Some(message) };
        self.record(rollout, &Next { ended: vec![change], ..Next::default() }).await?;
        // Whether it pauses the roll-out is decided with the next pass.
        Ok(to == MemberState::Gone)
    }
}

/// After something was decided about a roll-out: its loop goes on now, in whatever replica.
/// The change is committed, so a failure here is no answer to it.
pub(crate) async fn wake(context: &Context) {
    if let Err(error) = context.stores.operations.task_wake(Runner::TASK).await {
        tracing::warn!(%error, "the loop over roll-outs was not woken; it comes later by itself");
    }
    context.wakes.rollouts.notify_one();
}
