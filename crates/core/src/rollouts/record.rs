//! A roll-out and its members.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::closed_set::closed_set;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{ProjectId, Revision, RolloutId};
use crate::kind::kind;
use crate::rollouts::RolloutsWrite;
use crate::rollouts::write::Begin;
use crate::subject::Subject;
use crate::time::Timestamp;

closed_set!(
    /// What its members become.
    Purpose {
        /// Resources of a blueprint get another version of it.
        BlueprintUpgrade => "blueprint_upgrade",
        /// Agents get the newest object of a stack.
        StackObject => "stack_object",
        /// Tenants of a profile get the migrations of its folder.
        TenantMigration => "tenant_migration",
        /// Servers of a workspace get what their groups declare.
        WorkspaceChange => "workspace_change",
    }
);

closed_set!(
    /// Where a roll-out stands.
    RolloutState {
        Running => "running",
        /// No member is changed until somebody resumes it.
        Paused => "paused",
        RollingBack => "rolling_back",
        Done => "done",
        /// Members that were changed stay as they are.
        Aborted => "aborted",
        RolledBack => "rolled_back",
    }
);

impl RolloutState {
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Done | Self::Aborted | Self::RolledBack)
    }

    pub const fn is_back(self) -> bool {
        matches!(self, Self::RollingBack)
    }

    /// Whether the loop does something about it.
    pub const fn is_moving(self) -> bool {
        matches!(self, Self::Running | Self::RollingBack)
    }
}

closed_set!(
    /// Where a member stands.
    MemberState {
        Waiting => "waiting",
        /// It was changed, and is not healthy yet.
        Changing => "changing",
        Healthy => "healthy",
        Failed => "failed",
        /// Somebody decided to go on without it.
        Skipped => "skipped",
        /// It was deleted, or belongs to somebody else by now.
        Gone => "gone",
        /// It gets back what it had before.
        Reverting => "reverting",
        Reverted => "reverted",
        /// It has what it had before, and is not healthy with that either.
        RevertFailed => "revert_failed",
    }
);

impl MemberState {
    /// Whether it counts against the limit of members in work.
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Changing | Self::Reverting)
    }

    pub const fn is_failed(self) -> bool {
        matches!(self, Self::Failed | Self::RevertFailed)
    }

    /// Whether it has what it had before, or is on its way there.
    pub const fn is_reverted(self) -> bool {
        matches!(self, Self::Reverting | Self::Reverted | Self::RevertFailed)
    }

    /// Whether it has the change, as far as the roll-out knows.
    pub const fn is_changed(self) -> bool {
        matches!(self, Self::Changing | Self::Healthy | Self::Failed | Self::Skipped)
    }
}

/// How members are changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strategy {
    /// The first members, which are healthy before any other is changed.
    pub canary: u32,
    /// Members in work at the same time.
    pub parallel: u32,
    /// Failed members that do not pause it.
    pub failures_allowed: u32,
    /// How long a member may take to become healthy.
    pub healthy_within_seconds: u64,
    /// Label selectors: one wave for each, in this order; what none selects comes last.
    pub waves: Vec<String>,
    /// Whether an agent on which an object is failing counts as not healthy; of stacks only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait_for_health: bool,
}

impl Default for Strategy {
    fn default() -> Self {
        Self {
            canary: 1,
            parallel: 5,
            failures_allowed: 0,
            healthy_within_seconds: 30 * 60,
            waves: Vec::new(),
            wait_for_health: false,
        }
    }
}

impl Strategy {
    const PARALLEL_MAX: u32 = 1_000;
    const WITHIN_MAX: u64 = 24 * 3_600;
    const WAVES_MAX: usize = 20;

    pub fn check(&self) -> Result<(), Refusal> {
        let parallel = (1..=Self::PARALLEL_MAX).contains(&self.parallel);
        let within = (10..=Self::WITHIN_MAX).contains(&self.healthy_within_seconds);
        let faults = [
            (parallel, "parallel", "must be between 1 and 1000 members at a time"),
            (within, "healthy_within_seconds", "must be between 10 seconds and a day"),
            (self.waves.len() <= Self::WAVES_MAX, "waves", "must be at most 20 selectors"),
        ];
        let faults = faults.into_iter().filter(|(holds, ..)| !holds);
        Refusal::all(faults.map(|(_, field, problem)| Refusal::invalid(field, problem)))
    }

    pub const fn healthy_within(&self) -> Duration {
        Duration::from_secs(self.healthy_within_seconds)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Rollout {
    pub id: RolloutId,
    pub revision: Revision,
    pub purpose: Purpose,
    /// What all members belong to, such as a blueprint; one roll-out at a time.
    pub subject: Subject,
    /// The name of that.
    pub name: String,
    /// Only members of this project.
    pub project_id: Option<ProjectId>,
    /// What each member gets, as its owner understands it.
    pub change: Value,
    pub strategy: Strategy,
    pub state: RolloutState,
    /// Why it is paused, or what its end left.
    pub message: Option<String>,
    pub requested_by: String,
    pub reason: String,
    pub requested_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

kind!(Rollout, RolloutId, RolloutNotFound);

impl Rollout {
    /// As people call it: `upgrade of web to 1.2.0`.
    pub fn title(&self) -> String {
        match self.purpose {
            Purpose::BlueprintUpgrade => {
                let version = self.change["version"].as_str().unwrap_or("?");
                format!("upgrade of blueprint {} to {version}", self.name)
            }
            Purpose::StackObject => {
                let sequence = self.change["sequence"].as_i64().unwrap_or_default();
                format!("roll-out of object {sequence} of stack {}", self.name)
            }
            Purpose::TenantMigration => format!("migration of the tenants of {}", self.name),
            Purpose::WorkspaceChange => {
                format!("change of the servers of workspace {}", self.name)
            }
        }
    }

    pub(crate) fn ended(&self) -> Refusal {
        let message = format!(
            "the {} is {}; start another one to change something",
            self.title(),
            self.state.as_str().replace('_', " ")
        );
        Refusal::new(ErrorKind::RolloutEnded, message)
    }
}

/// One member. Its position is its place in the order.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub subject: Subject,
    pub name: String,
    pub wave: i32,
    pub position: i32,
    pub state: MemberState,
    /// What it had before it was changed, as its owner understands it.
    pub before: Value,
    /// When it was changed, or changed back.
    pub changed_at: Option<Timestamp>,
    /// Why it failed, or was skipped.
    pub message: Option<String>,
}

impl Member {
    /// It is changed, or changed back, in the same commit.
    pub fn begin(&self, rollout: &Rollout, before: Option<Value>) -> RolloutsWrite {
        let to = match rollout.state.is_back() {
            true => MemberState::Reverting,
            false => MemberState::Changing,
        };
        let (rollout, member, from) = (rollout.clone(), self.subject, self.state);
        RolloutsWrite::MemberBegin(Begin { rollout, member, from, to, before })
    }
}

/// How many members are in each state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress(pub Vec<(MemberState, u64)>);

impl Progress {
    pub fn of(&self, state: MemberState) -> u64 {
        self.0.iter().filter(|(of, _)| *of == state).map(|(_, count)| count).sum()
    }

    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }
}
