//! Who may do what: the roles, how far a key reaches, and the one rule that
//! holds both against what something demands.

use crate::closed_set::closed_set;
use crate::ids::ProjectId;

closed_set!(
    /// What a key lets its holder do. Each role may do what the one before may.
    Role {
        /// Reads.
        Viewer => "viewer",
        /// Declares, retries and deletes; issues tokens; ends leaks.
        Operator => "operator",
        /// Everything, among it the catalog and the keys.
        Admin => "admin",
    }
);

closed_set!(
    /// How far something reaches, and so which keys may do it.
    Scope {
        /// The installation as a whole: not for a key that is bound to a project.
        Installation => "installation",
        /// Belongs to a project: a bound key meets only what belongs to its own,
        /// and the rest is as unknown to it as what does not exist.
        Project => "project",
        /// Of the installation, and needed by whoever works in a project.
        Shared => "shared",
    }
);

/// Why a key may not do something. What is in another project is no denial: it
/// is not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// A role of at least this is needed.
    Role(Role),
    /// A key is needed that is not bound to a project.
    Bound,
}

/// Holds a key against what is demanded. The role is asked first.
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

    /// A higher role and a wider reach never lose anything.
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
