//! Who may do what. One role exists so far, the admin's; every use-case asks
//! here all the same, so that a second one is a change of this file.

use slipway_core::audit::Actor;
use slipway_core::error::{ErrorKind, Refusal};

/// The caller, after authentication.
#[derive(Debug, Clone)]
pub struct Caller {
    pub name: String,
    pub role: Role,
    pub correlation_id: String,
}

/// What a key lets its holder do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Admin,
}

impl Role {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        (text == Self::Admin.as_str()).then_some(Self::Admin)
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
    ProjectWrite,
    CloudRead,
    CloudWrite,
    CredentialRead,
    CredentialWrite,
    CredentialAssign,
    BlueprintRead,
    BlueprintWrite,
    LabelRead,
    LabelWrite,
    ClusterRead,
    ClusterWrite,
    ClusterAssign,
    NodeRead,
    NodeForceDrain,
    DeletionRead,
    EventRead,
    SubscriptionRemove,
    LoopRead,
    LeakRead,
    LeakFind,
    LeakResolve,
    LeakRemove,
    ControlRead,
    ControlFreeze,
    ControlResume,
}

/// Answers the actor under which the change is audited, or refuses.
pub fn authorise(caller: &Caller, verb: Verb) -> Result<Actor, Refusal> {
    let permitted = match (caller.role, verb) {
        (Role::Admin, _) => true,
    };
    if !permitted {
        return Err(Refusal::new(
            ErrorKind::Forbidden,
            format!("key `{}` may not do {verb:?}; ask for another role", caller.name),
        ));
    }
    Ok(Actor {
        name: format!("key:{}", caller.name),
        correlation_id: Some(caller.correlation_id.clone()),
    })
}
