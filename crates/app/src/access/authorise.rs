//! Who may do what. Every use-case authorises its operation here. The guard of
//! a route checks the same operation earlier, before it reads the request.

use slipway_core::access::audit::Actor;
use slipway_core::access::role::{self, Denial};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{ApiKeyId, ProjectId};

use crate::access::operation::{AGENT, GENERATOR};
pub use crate::access::operation::{Operation, Terms};
pub use slipway_core::access::api_key::Principal;
pub use slipway_core::access::role::Role;

/// The caller, after authentication.
#[derive(Debug, Clone)]
pub struct Caller {
    pub name: String,
    pub role: Role,
    /// For other than its holder, the role counts for nothing.
    pub principal: Principal,
    /// The only project that the caller reaches; `None` reaches all of them.
    pub project: Option<ProjectId>,
    /// The key that the caller authenticated with.
    pub key_id: Option<ApiKeyId>,
    pub correlation_id: String,
}

impl Caller {
    /// A caller inside this process that may do everything.
    pub fn trusted(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            role: Role::Admin,
            principal: Principal::Holder,
            project: None,
            key_id: None,
            correlation_id: name.to_owned(),
        }
    }

    pub fn reaches(&self, project: ProjectId) -> bool {
        self.project.is_none_or(|own| own == project)
    }
}

/// Returns the actor under which the change is audited, or refuses.
pub fn authorise(caller: &Caller, operation: Operation) -> Result<Actor, Refusal> {
    admit(caller, operation)?;
    Ok(Actor {
        name: format!("key:{}", caller.name),
        correlation_id: Some(caller.correlation_id.clone()),
    })
}

/// What a principal beside the roles is called in `Terms::principals`.
fn kind_of(principal: Principal) -> Option<&'static str> {
    match principal {
        Principal::Holder => None,
        Principal::Agent(_) => Some(AGENT),
        Principal::Generator(_) => Some(GENERATOR),
    }
}

/// Refuses a caller whose role or reach does not suffice.
pub fn admit(caller: &Caller, operation: Operation) -> Result<(), Refusal> {
    let Terms { least, reach, principals, .. } = operation.terms();
    if let Some(kind) = kind_of(caller.principal) {
        if principals.contains(&kind) {
            return Ok(());
        }
        let problem = format!(
            "key `{}` belongs to {kind}, which may not do this; use a key of a person",
            caller.name
        );
        return Err(Refusal::new(ErrorKind::Forbidden, problem));
    }
    let problem = match role::check(caller.role, caller.project, least, reach) {
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
