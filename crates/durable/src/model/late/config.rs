//! What a write names, and when something counts. A mutation is a configuration with
//! one of these changed.

use crate::EarlierClaims;

/// A configuration to check.
#[derive(Debug, Clone, Copy)]
pub(super) struct Config {
    pub(super) kind: Kind,
    pub(super) conditions: Conditions,
    pub(super) rules: Rules,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of one attempt: its deletion is final, it carries a token and the claim that
    /// wrote it.
    Composite,
    /// Of all resources of a project: released when none needs it, and taken back when
    /// one is declared again.
    Shared,
}

/// The conditions that requests name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conditions {
    pub(super) create: CreateNames,
    pub(super) update: UpdateNames,
    pub(super) delete: DeleteNames,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CreateNames {
    /// `resourceVersion: "1"`: fails if anything is there.
    Absence,
    /// Nothing: writes over what is there.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateNames {
    UidAndVersion,
    /// Writes over whatever happened to the object since it was read.
    Uid,
    /// Makes an object anew that has vanished.
    Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeleteNames {
    UidAndVersion,
    Uid,
}

/// The rules of the loops. Each is needed; the tests disable them one by one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// A deletion may be taken back. True for shared objects.
    pub(super) deletion_is_taken_back: bool,
    /// How a shared object that is needed again is told from one that is being removed.
    pub(super) count: Count,
    /// Resources are admitted after the answer to the write that takes a removal back.
    pub(super) admits_after_the_answer: bool,
    /// A retry after a conflict gives way to what a newer claim wrote.
    pub(super) retry_compares_claims: bool,
    pub(super) earlier_claims: EarlierClaims,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// Every decision to remove an object raises the recorded count. The object is in
    /// place only if it carries the recorded count, which moves its version.
    RaisedByEveryRemoval,
    /// The same, but a decision leaves a count alone that is above the one which the
    /// object carries.
    RaisedAboveTheObject,
    /// The decision to take a removal back writes a new count to the object.
    RaisedByTakingBack,
    /// Taking a removal back changes nothing in the object.
    Absent,
}

impl Config {
    pub(super) const fn composite(earlier_claims: EarlierClaims) -> Self {
        Self {
            kind: Kind::Composite,
            conditions: Conditions {
                create: CreateNames::Absence,
                update: UpdateNames::UidAndVersion,
                delete: DeleteNames::Uid,
            },
            rules: Rules {
                deletion_is_taken_back: false,
                count: Count::RaisedByEveryRemoval,
                admits_after_the_answer: true,
                retry_compares_claims: true,
                earlier_claims,
            },
        }
    }

    pub(super) const fn shared(earlier_claims: EarlierClaims) -> Self {
        let composite = Self::composite(earlier_claims);
        Self {
            kind: Kind::Shared,
            conditions: Conditions { delete: DeleteNames::UidAndVersion, ..composite.conditions },
            rules: Rules { deletion_is_taken_back: true, ..composite.rules },
        }
    }
}
