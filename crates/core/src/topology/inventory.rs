//! What the provider lists of a group, compared with our rows. Two reads of the rows frame the
//! list, so that what changes meanwhile is no contradiction: what had to be there was there
//! before, and what may be there includes what came until after.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::broker::phase::Phase;
use crate::error::{ErrorKind, Refusal};
use crate::ids::ProvisionedResourceId;

/// How old a list may be when a gate decides by it.
pub const MAX_AGE: Duration = Duration::from_secs(30);

/// An attempt of a server of the group, as our rows have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub id: ProvisionedResourceId,
    pub server: String,
    pub phase: Phase,
}

impl Known {
    /// Whether the provider has to list it. One that is taken down may never have been made.
    const fn must_be_there(&self) -> bool {
        matches!(self.phase, Phase::Enrolling | Phase::Ready)
    }

    /// Whether the provider may list it. One that is Deleted was proven absent.
    const fn may_be_there(&self) -> bool {
        !matches!(self.phase, Phase::Deleted)
    }
}

/// One object that the provider lists with the label of the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    /// `None` if its labels name no attempt.
    pub id: Option<ProvisionedResourceId>,
}

/// What a gate knows about the provider's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inventory {
    /// It was compared with our rows, this long ago.
    Compared { age: Duration, unknown: Vec<String>, missing: Vec<String> },
    /// It could not be read.
    Unavailable { reason: String },
}

/// Compares a list with the rows read before and after it.
pub fn compare(before: &[Known], listed: &[Listed], after: &[Known]) -> Inventory {
    let there: BTreeSet<_> = listed.iter().filter_map(|one| one.id).collect();
    let may: BTreeSet<_> =
        before.iter().chain(after).filter(|one| one.may_be_there()).map(|one| one.id).collect();
    let still: BTreeSet<_> =
        after.iter().filter(|one| one.must_be_there()).map(|one| one.id).collect();
    let missing = before
        .iter()
        .filter(|one| one.must_be_there() && still.contains(&one.id) && !there.contains(&one.id));
    let unknown = listed.iter().filter(|one| one.id.is_none_or(|id| !may.contains(&id)));
    Inventory::Compared {
        age: Duration::ZERO,
        unknown: unknown.map(|one| one.name.clone()).collect(),
        missing: missing.map(|one| one.server.clone()).collect(),
    }
}

impl Inventory {
    /// Refuses a decision that would rely on a list that is old, missing or contradicts us.
    pub fn check(&self, group: &str) -> Result<(), Refusal> {
        match self {
            Self::Unavailable { reason } => {
                let message = format!(
                    "the provider's list of group `{group}` could not be read: {reason}; try again once it can"
                );
                Err(Refusal::new(ErrorKind::InventoryUnavailable, message)
                    .with(json!({ "reason": reason })))
            }
            Self::Compared { age, .. } if *age > MAX_AGE => {
                let message = format!(
                    "the provider's list of group `{group}` is {} s old, and {} s are allowed; try again",
                    age.as_secs(),
                    MAX_AGE.as_secs()
                );
                Err(Refusal::new(ErrorKind::InventoryUnavailable, message)
                    .with(json!({ "age_seconds": age.as_secs() })))
            }
            Self::Compared { unknown, missing, .. }
                if !(unknown.is_empty() && missing.is_empty()) =>
            {
                let message = format!(
                    "the provider and Slipway disagree about group `{group}`: {}; `slipway leaks list` shows what nobody claims",
                    disagreement(unknown, missing)
                );
                Err(Refusal::new(ErrorKind::InventoryMismatch, message)
                    .with(json!({ "unknown": unknown, "missing": missing })))
            }
            Self::Compared { .. } => Ok(()),
        }
    }

    /// The same list, so much later.
    #[must_use]
    pub fn aged(&self, by: Duration) -> Self {
        match self {
            Self::Compared { age, unknown, missing } => Self::Compared {
                age: age.saturating_add(by),
                unknown: unknown.clone(),
                missing: missing.clone(),
            },
            Self::Unavailable { .. } => self.clone(),
        }
    }

    pub fn shown(&self) -> Value {
        match self {
            Self::Unavailable { reason } => json!({ "unavailable": reason }),
            Self::Compared { age, unknown, missing } => {
                json!({ "age_seconds": age.as_secs(), "unknown": unknown, "missing": missing })
            }
        }
    }
}

fn disagreement(unknown: &[String], missing: &[String]) -> String {
    let part = |names: &[String], said: &str| {
        (!names.is_empty()).then(|| format!("{said} {}", names.join(", ")))
    };
    let parts = [part(unknown, "it lists, and we do not know,"), part(missing, "it does not list")];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const fn id(number: u128) -> ProvisionedResourceId {
        ProvisionedResourceId::new(Uuid::from_u128(number))
    }

    fn known(number: u128, phase: Phase) -> Known {
        Known { id: id(number), server: format!("worker-{number}"), phase }
    }

    fn listed(number: u128) -> Listed {
        Listed { name: format!("pr-{number}"), id: Some(id(number)) }
    }

    fn lists(inventory: &Inventory) -> (Vec<String>, Vec<String>) {
        match inventory {
            Inventory::Compared { unknown, missing, .. } => (unknown.clone(), missing.clone()),
            Inventory::Unavailable { .. } => panic!("it was compared"),
        }
    }

    #[test]
    fn what_comes_or_goes_while_the_list_is_read_is_no_contradiction() {
        let before =
            [known(1, Phase::Ready), known(2, Phase::Provisioning), known(3, Phase::Ready)];
        let after = [known(1, Phase::Ready), known(2, Phase::Ready), known(4, Phase::Pending)];
        for there in [vec![1, 3], vec![1, 2, 3], vec![1], vec![1, 4]] {
            let there: Vec<_> = there.into_iter().map(listed).collect();
            let found = compare(&before, &there, &after);
            assert_eq!(lists(&found), (vec![], vec![]), "{there:?}");
            assert!(found.check("workers").is_ok());
        }
    }

    #[test]
    fn both_lists_are_named() {
        let rows = [
            known(1, Phase::Ready),
            known(2, Phase::Ready),
            known(3, Phase::Deleted),
            // Taken down before anything was made for it.
            known(4, Phase::Deregistering),
        ];
        let nameless = Listed { name: "stray".to_owned(), id: None };
        let found = compare(&rows, &[listed(1), listed(3), listed(9), nameless], &rows);
        let refusal = found.check("workers").unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::InventoryMismatch);
        let details = refusal.details.unwrap();
        assert_eq!(details["unknown"], json!(["pr-3", "pr-9", "stray"]));
        assert_eq!(details["missing"], json!(["worker-2"]));
    }

    #[test]
    fn an_old_list_is_no_list() {
        let of = |seconds| Inventory::Compared {
            age: Duration::from_secs(seconds),
            unknown: vec![],
            missing: vec![],
        };
        assert!(of(30).check("workers").is_ok());
        assert_eq!(of(31).check("workers").unwrap_err().kind, ErrorKind::InventoryUnavailable);
        let unavailable = Inventory::Unavailable { reason: "timed out".to_owned() };
        assert_eq!(unavailable.check("w").unwrap_err().kind, ErrorKind::InventoryUnavailable);
    }
}
