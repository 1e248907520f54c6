//! Who may do what. Every use-case asks here by its verb; the surface asks once
//! more by its own table, before it looks at a request, and a test holds the
//! two against each other.

use slipway_core::access::{self, Denial, Scope};
use slipway_core::audit::Actor;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{ApiKeyId, ProjectId};

pub use slipway_core::access::Role;

/// The caller, after authentication.
#[derive(Debug, Clone)]
pub struct Caller {
    pub name: String,
    pub role: Role,
    /// The only project that the caller reaches; all of them without one.
    pub project: Option<ProjectId>,
    /// The key they came with.
    pub key_id: Option<ApiKeyId>,
    pub correlation_id: String,
}

impl Caller {
    /// Somebody inside this process who may do everything.
    pub fn trusted(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            role: Role::Admin,
            project: None,
            key_id: None,
            correlation_id: name.to_owned(),
        }
    }

    /// Whether something of this project is there for the caller.
    pub fn reaches(&self, project: ProjectId) -> bool {
        self.project.is_none_or(|own| own == project)
    }
}

/// The verbs that are authorised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    ResourceDeclare,
    ResourceRead,
    ResourceDelete,
    ResourceRetry,
    ResourceRelabel,
    ProjectRead,
    ProjectRelabel,
    ProjectWrite,
    CloudRead,
    CloudWrite,
    CredentialRead,
    CredentialListAll,
    CredentialWrite,
    CredentialAssign,
    BlueprintRead,
    BlueprintWrite,
    LabelRead,
    LabelWrite,
    ClusterRead,
    ClusterListPlaces,
    ClusterWrite,
    ClusterAssign,
    NodeRead,
    NodeForceDrain,
    DeletionRead,
    EventRead,
    SubscriptionRead,
    SubscriptionRemove,
    LoopRead,
    LeakRead,
    LeakFind,
    LeakResolve,
    LeakRemove,
    ControlRead,
    PlanRead,
    ControlFreeze,
    ControlResume,
    KeyRead,
    KeyWrite,
    KeyShowOwn,
    TokenRead,
    TokenWrite,
    AuditRead,
}

impl Verb {
    /// The least role, and how far it reaches.
    pub const fn demands(self) -> (Role, Scope) {
        match self {
            Self::ResourceRead
            | Self::ProjectRead
            | Self::CredentialRead
            | Self::NodeRead
            | Self::DeletionRead
            | Self::EventRead
            | Self::TokenRead
            | Self::AuditRead => (Role::Viewer, Scope::Project),
            Self::CloudRead
            | Self::BlueprintRead
            | Self::LabelRead
            | Self::ClusterRead
            | Self::ControlRead
            | Self::KeyShowOwn => (Role::Viewer, Scope::Shared),
            Self::CredentialListAll
            | Self::ClusterListPlaces
            | Self::SubscriptionRead
            | Self::LoopRead
            | Self::LeakRead
            | Self::PlanRead => (Role::Viewer, Scope::Installation),
            Self::ResourceDeclare
            | Self::ResourceDelete
            | Self::ResourceRetry
            | Self::ResourceRelabel
            | Self::TokenWrite => (Role::Operator, Scope::Project),
            Self::LeakFind | Self::LeakResolve | Self::LeakRemove => {
                (Role::Operator, Scope::Installation)
            }
            Self::NodeForceDrain | Self::ProjectRelabel | Self::KeyRead | Self::KeyWrite => {
                (Role::Admin, Scope::Project)
            }
            Self::ProjectWrite
            | Self::CloudWrite
            | Self::CredentialWrite
            | Self::CredentialAssign
            | Self::BlueprintWrite
            | Self::LabelWrite
            | Self::ClusterWrite
            | Self::ClusterAssign
            | Self::SubscriptionRemove
            | Self::ControlFreeze
            | Self::ControlResume => (Role::Admin, Scope::Installation),
        }
    }
}

/// Answers the actor under which the change is audited, or refuses.
pub fn authorise(caller: &Caller, verb: Verb) -> Result<Actor, Refusal> {
    let (least, scope) = verb.demands();
    admit(caller, least, scope)?;
    Ok(Actor {
        name: format!("key:{}", caller.name),
        correlation_id: Some(caller.correlation_id.clone()),
    })
}

/// Refuses a caller whose role or reach is not enough, whatever is asked for.
pub fn admit(caller: &Caller, least: Role, scope: Scope) -> Result<(), Refusal> {
    let problem = match access::check(caller.role, caller.project, least, scope) {
        Ok(()) => return Ok(()),
        Err(Denial::Role(least)) => format!(
            "key `{}` is {}, and this takes the role {least}; ask for a key with that role",
            caller.name, caller.role
        ),
        Err(Denial::Bound) => format!(
            "key `{}` is bound to a project, and this is about the whole installation; ask for a \
             key that is not",
            caller.name
        ),
    };
    Err(Refusal::new(ErrorKind::Forbidden, problem))
}
