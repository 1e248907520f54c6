//! The ledger: every object of ours on the cluster, made up from its changes in
//! the order of their resource versions, which one etcd gives to all kinds. Pure.
//!
//! It knows two rules: nothing that is in use goes, and no older claim ends on
//! top of a newer one.

use std::collections::BTreeMap;

/// In the order in which they are made; they go in the reverse order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Namespace,
    ExternalSecret,
    ProviderConfig,
    Composite,
}

/// One change of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) kind: Kind,
    /// Of a namespace its own name.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// As it is now.
    Written {
        terminating: bool,
        claim: Option<i64>,
    },
    Gone,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    version: u64,
    /// Whether each of them is being deleted, by namespace, kind and name.
    objects: BTreeMap<(String, Kind, String), bool>,
    /// The newest claim that wrote each composite, by uid. A late create may make
    /// a composite anew that a newer claim deleted; it has to be gone at rest.
    claims: BTreeMap<String, i64>,
}

impl Ledger {
    /// Folds a change in, and returns what is wrong with it.
    pub(super) fn take_in(&mut self, change: &Change) -> Vec<String> {
        let mut wrong = Vec::new();
        let Change { version, kind, namespace, name, uid, what } = change;
        if *version <= self.version {
            wrong.push(format!("the soak read {change:?} after a change at {}", self.version));
        }
        self.version = (*version).max(self.version);
        let key = (namespace.clone(), *kind, name.clone());
        let before = match what {
            What::Gone => self.objects.remove(&key),
            What::Written { terminating, .. } => self.objects.insert(key, *terminating),
        };
        let (was_going, goes) = match what {
            What::Gone => (before == Some(true), true),
            What::Written { terminating, .. } => (before == Some(true), *terminating),
        };
        // A composite itself goes whenever its resource does.
        if goes && !was_going && *kind != Kind::Composite {
            let users = self.above(namespace, *kind);
            if !users.is_empty() {
                wrong.push(format!(
                    "{kind:?} {namespace}/{name} went at version {version} while {} lived",
                    users.join(", ")
                ));
            }
        }
        if let What::Written { claim, .. } = what
            && *kind == Kind::Composite
        {
            if before.is_none() {
                let missing = self.missing_below(namespace);
                if !missing.is_empty() {
                    wrong.push(format!(
                        "composite {namespace}/{name} was made at version {version} without {missing:?}"
                    ));
                }
            }
            if let Some(claim) = claim {
                let newest = self.claims.entry(uid.clone()).or_default();
                if claim < newest {
                    wrong.push(format!(
                        "composite {namespace}/{name} has at version {version} claim {claim}, \
                         after claim {newest}"
                    ));
                }
                *newest = (*newest).max(*claim);
            }
        }
        wrong
    }

    /// What is made after this kind, in the same namespace.
    fn above(&self, namespace: &str, kind: Kind) -> Vec<String> {
        let there = self.objects.keys().filter(|(other, ..)| other == namespace);
        there
            .filter(|(_, above, _)| *above > kind)
            .map(|(_, kind, name)| format!("{kind:?} {name}"))
            .collect()
    }

    /// What a composite needs, and is not there to stay.
    fn missing_below(&self, namespace: &str) -> Vec<Kind> {
        let has = |kind: Kind| {
            let mut there = self.objects.iter().filter(|((other, ..), _)| other == namespace);
            there.any(|((_, other, _), terminating)| *other == kind && !terminating)
        };
        let needed = [Kind::Namespace, Kind::ExternalSecret, Kind::ProviderConfig];
        needed.into_iter().filter(|kind| !has(*kind)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Kind::{Composite, ExternalSecret, Namespace, ProviderConfig};
    use super::{Change, Kind, Ledger, What};

    const LIVES: What = What::Written { terminating: false, claim: None };
    const NONE: [usize; 0] = [];
    const GOES: What = What::Written { terminating: true, claim: None };

    fn claimed(claim: i64) -> What {
        What::Written { terminating: false, claim: Some(claim) }
    }

    /// What is wrong with each change; their versions count up.
    fn take_in(changes: &[(Kind, What)]) -> Vec<usize> {
        let mut ledger = Ledger::default();
        let mut wrong = Vec::new();
        for (index, (kind, what)) in changes.iter().enumerate() {
            let change = Change {
                version: index as u64 + 1,
                kind: *kind,
                namespace: "n".to_owned(),
                name: format!("{kind:?}"),
                uid: "u".to_owned(),
                what: what.clone(),
            };
            wrong.extend(ledger.take_in(&change).iter().map(|_| index));
        }
        wrong
    }

    const MADE: [(Kind, What); 4] =
        [(Namespace, LIVES), (ExternalSecret, LIVES), (ProviderConfig, LIVES), (Composite, LIVES)];

    fn after_made(changes: &[(Kind, What)]) -> Vec<usize> {
        let all: Vec<_> = MADE.into_iter().chain(changes.iter().cloned()).collect();
        take_in(&all)
    }

    #[test]
    fn a_life_in_order_is_fine() {
        let life = [
            (Composite, claimed(1)),
            (Composite, claimed(3)),
            (Composite, GOES),
            (Composite, What::Gone),
            (ProviderConfig, What::Gone),
            (ExternalSecret, What::Gone),
            (Namespace, GOES),
            (Namespace, What::Gone),
        ];
        assert_eq!(after_made(&life), NONE);
    }

    #[test]
    fn nothing_goes_that_is_in_use() {
        for kind in [Namespace, ExternalSecret, ProviderConfig] {
            assert_eq!(after_made(&[(kind, What::Gone)]), [4], "{kind:?}");
            // Reported once, and not again when it is gone.
            assert_eq!(after_made(&[(kind, GOES), (kind, What::Gone)]), [4], "{kind:?}");
            // A composite that is being deleted still needs it.
            assert_eq!(after_made(&[(Composite, GOES), (kind, What::Gone)]), [5], "{kind:?}");
        }
        let out_of_order = [(Composite, What::Gone), (ExternalSecret, What::Gone)];
        assert_eq!(after_made(&out_of_order), [5]);
    }

    #[test]
    fn no_composite_is_made_without_what_it_needs() {
        assert_eq!(take_in(&[(Composite, LIVES)]), [0]);
        assert_eq!(take_in(&MADE[1..]), [2], "its namespace is missing");
    }

    #[test]
    fn the_claims_on_a_composite_only_grow() {
        assert_eq!(after_made(&[(Composite, claimed(3)), (Composite, claimed(2))]), [5]);
        assert_eq!(after_made(&[(Composite, claimed(3)), (Composite, claimed(3))]), NONE);
    }

    #[test]
    fn a_change_that_arrives_late_is_told() {
        let mut ledger = Ledger::default();
        let change = |version| Change {
            version,
            kind: Namespace,
            namespace: "n".to_owned(),
            name: "n".to_owned(),
            uid: "u".to_owned(),
            what: LIVES,
        };
        assert_eq!(ledger.take_in(&change(5)), Vec::<String>::new());
        assert_eq!(ledger.take_in(&change(4)).len(), 1);
    }
}
