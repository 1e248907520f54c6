//! Chooses the cluster of a region for a project.

use crate::ids::ClusterId;

/// A cluster of the requested region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub id: ClusterId,
    /// Its `substrate_uid` is known, and no verification found a problem.
    pub usable: bool,
    /// How many projects are placed there.
    pub projects: i64,
    /// Whether the project to place is one of them.
    pub is_home: bool,
}

/// The cluster where the project is already, else the usable one with the
/// fewest projects; of equals the oldest.
pub fn choose(candidates: &[Candidate]) -> Option<ClusterId> {
    let home = candidates.iter().find(|candidate| candidate.is_home);
    let emptiest = || {
        let usable = candidates.iter().filter(|candidate| candidate.usable);
        usable.min_by_key(|candidate| (candidate.projects, candidate.id))
    };
    home.or_else(emptiest).map(|candidate| candidate.id)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn candidate(id: u128, usable: bool, projects: i64) -> Candidate {
        Candidate { id: ClusterId::new(Uuid::from_u128(id)), usable, projects, is_home: false }
    }

    #[test]
    fn the_emptiest_usable_one_is_chosen_and_home_before_all() {
        let mut all = vec![candidate(1, false, 0), candidate(3, true, 2), candidate(2, true, 2)];
        assert_eq!(choose(&all), Some(all[2].id));
        all[0].is_home = true;
        assert_eq!(choose(&all), Some(all[0].id), "to ask twice is to ask once");
        assert_eq!(choose(&all[..0]), None);
        assert_eq!(choose(&[candidate(1, false, 0)]), None);
    }
}
