//! Plans: what a deletion would take away, stored before anybody asks for it. A deletion
//! that names its plan is refused if what it would take away is not what the plan read.
//!
//! A plan promises nothing about phases: a resource that became Ready meanwhile is the
//! same resource.

mod check;
mod draft;
mod members;
mod shown;

use std::time::Duration;

pub use check::Use;
pub use draft::{Circumstances, Draft};
pub use members::{Difference, Member, Members, difference};
pub use shown::{
    Composed, Group, Namespace, PastTeardowns, Reading, RefusalShown, ResourceRow, Shown, Stage,
    StepAction, VersionRow,
};

use crate::deletion::approval::Approval;
use crate::ids::{DeletionId, PlanId, ProjectId, Revision};
use crate::subject::Subject;
use crate::time::Timestamp;

/// How long a plan can be used.
pub const LIFETIME: Duration = Duration::from_secs(3_600);

/// Plans that one caller may have of one thing and that nobody used; another one replaces
/// the oldest. A plan may be large.
pub const UNUSED_MAX: i64 = 10;

/// The stored record.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub id: PlanId,
    pub revision: Revision,
    pub target: Subject,
    /// The name of the target, for people.
    pub name: String,
    /// The project that the target is or belongs to.
    pub project_id: Option<ProjectId>,
    pub cascade: bool,
    pub planned_by: String,
    pub planned_at: Timestamp,
    pub expires_at: Timestamp,
    /// The deletion that it became.
    pub used_by: Option<DeletionId>,
    pub approval: Option<Approval>,
    /// Of the members: the same digest, the same members.
    pub digest: String,
    /// Everything that would go, to name the difference later.
    pub members: Members,
    /// What people see.
    pub shown: Shown,
}
