//! Who may do what: the roles, how far a key reaches, and the one rule that
//! checks both against what an operation requires.

use crate::closed_set::closed_set;
use crate::ids::ProjectId;

closed_set!(
    /// What a key lets its holder do. Each role includes the one before.
    Role {
        /// Reads.
        Viewer => "viewer",
        /// Declares, retries, deletes; issues tokens; removes and resolves leaks.
        Operator => "operator",
        /// Everything, including the catalog and the keys.
        Admin => "admin",
    }
);

closed_set!(
    /// How far an operation reaches, and so which keys may call it.
    Scope {
        /// The whole installation: refused to a key that is bound to a project.
        Installation => "installation",
        /// Belongs to a project. A bound key reaches only its own project;
        /// everything else is "not found", as if it did not exist.
        Project => "project",
        /// Belongs to the installation, but work in a project needs it.
        Shared => "shared",
    }
);

/// Why a key may not do something. An object of another project is no denial:
/// it is not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// A role of at least this is needed.
    Role(Role),
    /// A key is needed that is not bound to a project.
    Bound,
}

/// Checks a key against the required role and scope. The role comes first.
pub fn check(
    role: Role,
    project: Option<ProjectId>,
    least: Role,
    scope: Scope,
) -> Result<(), Denial> {
    if role < least {
        return Err(Denial::Role(least));
    }
    match (scope, project) {
        (Scope::Installation, Some(_)) => Err(Denial::Bound),
        (Scope::Installation, None) | (Scope::Project | Scope::Shared, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    /// A higher role or a wider reach never loses a right.
    #[test]
    fn rights_grow_with_the_role_and_with_the_reach() {
        let bound = Some(ProjectId::new(Uuid::from_u128(1)));
        for &least in Role::ALL {
            for &scope in Scope::ALL {
                let may = |role, project| check(role, project, least, scope).is_ok();
                for pair in Role::ALL.windows(2) {
                    for project in [bound, None] {
                        assert!(!may(pair[0], project) || may(pair[1], project));
                    }
                }
                for &role in Role::ALL {
                    assert!(!may(role, bound) || may(role, None));
                    assert_eq!(may(role, None), role >= least);
                }
                assert!(may(Role::Admin, None));
            }
        }
        let denied = check(Role::Viewer, bound, Role::Operator, Scope::Installation);
        assert_eq!(denied, Err(Denial::Role(Role::Operator)), "the role is asked first");
    }
}
