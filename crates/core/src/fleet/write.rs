//! What decisions write about Fleet.

use uuid::Uuid;

use crate::fleet::agent::Agent;
use crate::fleet::generator::Generator;
use crate::fleet::links::{Registration, Target};
use crate::fleet::object::{DeploymentObject, NewObject};
use crate::fleet::offer::Offered;
use crate::fleet::per_agent::Rendering;
use crate::fleet::prune::PruneConfirmed;
use crate::fleet::stack::Stack;
use crate::fleet::tags::{Annotation, Label};
use crate::fleet::template::Template;
use crate::ids::{DeletionId, DeploymentObjectId, Revision, StackId};
use crate::subject::Subject;
use crate::time::Timestamp;

/// Rows of Fleet. An update names the revision in the aggregate.
#[derive(Debug, Clone, PartialEq)]
pub enum FleetWrite {
    GeneratorInsert(Generator),
    GeneratorUpdate(Generator),
    StackInsert(Stack),
    /// Also the number of its last object.
    StackUpdate(Stack),
    TemplateInsert(Template),
    AgentInsert(Agent),
    AgentUpdate(Agent),
    ObjectInsert(DeploymentObject),
    /// Objects that the store makes: markers, and copies of older ones.
    ObjectsMake(Vec<NewObject>),
    ObjectWithdraw(DeploymentObjectId, Timestamp),
    /// Members of the deletion of their container, each unless it was written since it was read.
    MembersLeave(MembersLeave),
    /// Deleted stacks have the numbers of their markers.
    StacksNumber(Vec<(StackId, i64)>),
    /// Stacks that come back have the numbers of their new objects, which everybody may have.
    StacksReturn(Vec<(StackId, i64)>),
    LabelInsert(Label),
    AnnotationInsert(Annotation),
    RegistrationInsert(Registration),
    TargetInsert(Target),
    /// By the id of its row.
    LabelRemove(Uuid),
    AnnotationRemove(Uuid),
    RegistrationRemove(Uuid),
    TargetRemove(Uuid),
    /// What an agent is offered from now on, as far as it is not what it was offered last.
    Offer(Vec<Offered>),
    /// What objects are for one agent.
    Renderings(Vec<Rendering>),
    PruneConfirm(PruneConfirmed),
}

/// What goes with its generator or its project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembersLeave {
    pub deletion_id: DeletionId,
    pub deleted_at: Timestamp,
    pub rows: Vec<MemberLeaves>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberLeaves {
    pub subject: Subject,
    /// The revision that was read.
    pub revision: Revision,
    /// Of a stack the number of its marker.
    pub sequence: Option<i64>,
}
