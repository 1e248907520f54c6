//! What callers and the world do in a sequence.

/// The number of the request that made something: a thing, a deletion or a plan.
pub(super) type Key = u32;

/// Whose key asks. Ada and Bob are admins; Eve's key, of an operator, was made by Ada's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Ada,
    Bob,
    Eve,
}

impl Who {
    pub(super) const ALL: [Self; 3] = [Self::Ada, Self::Bob, Self::Eve];

    pub(super) const fn is_admin(self) -> bool {
        !matches!(self, Self::Eve)
    }

    /// Who made a key has read it.
    pub(super) const fn is_same_person(self, other: Self) -> bool {
        matches!(self, Self::Bob) == matches!(other, Self::Bob)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Project,
    Resource,
    Cloud,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grace {
    /// What the settings say, which is none.
    Unsaid,
    None,
    Hour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delete {
    pub(super) target: Key,
    pub(super) grace: Grace,
    pub(super) cascade: bool,
    pub(super) break_glass: bool,
    pub(super) plan: Option<Key>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    CreateProject {
        name: u8,
    },
    CreateCloud {
        name: u8,
    },
    Declare {
        project: Key,
        name: u8,
        protected: bool,
    },
    Protect(Key),
    Unprotect(Key),
    Lift(Key),
    Plan {
        target: Key,
        cascade: bool,
    },
    Approve(Key),
    Delete(Delete),
    Cancel(Key),
    Restore {
        deletion: Key,
        redeclare: bool,
        rename: Option<u8>,
    },
    Purge {
        deletion: Key,
        despite: bool,
    },
    Release(Who),
    Set {
        project: Key,
        approve: bool,
        purge_protected: bool,
    },
    /// The loop over deletions runs until nothing changes.
    Pass,
    /// The loop over resources takes a resource down.
    TakeDown(Key),
    /// It proves a second time that the substrate of a resource is gone.
    Prove(Key),
    /// Somebody finds something of a deleted resource outside.
    Leak(Key),
    Resolve(Key),
    /// Time passes.
    LiftEnds(Key),
    GraceEnds(Key),
    RetentionEnds(Key),
}

impl Operation {
    /// Every one, by name.
    pub(super) const NAMES: [&'static str; 22] = [
        "CreateProject",
        "CreateCloud",
        "Declare",
        "Protect",
        "Unprotect",
        "Lift",
        "Plan",
        "Approve",
        "Delete",
        "Cancel",
        "Restore",
        "Purge",
        "Release",
        "Set",
        "Pass",
        "TakeDown",
        "Prove",
        "Leak",
        "Resolve",
        "LiftEnds",
        "GraceEnds",
        "RetentionEnds",
    ];

    pub(super) fn name(self) -> String {
        let shown = format!("{self:?}");
        shown.split(['(', ' ']).next().unwrap_or_default().to_owned()
    }

    /// Whether it makes, changes or uses a plan.
    pub(super) const fn is_about_plans(self) -> bool {
        matches!(
            self,
            Self::Plan { .. } | Self::Approve(_) | Self::Delete(Delete { plan: Some(_), .. })
        )
    }

    /// Whether two of them may run at the same moment. The others stand for time, and for
    /// loops whose races the suite has elsewhere.
    pub(super) const fn may_race(self) -> bool {
        !matches!(
            self,
            Self::Set { .. }
                | Self::TakeDown(_)
                | Self::Prove(_)
                | Self::Leak(_)
                | Self::Resolve(_)
                | Self::LiftEnds(_)
                | Self::GraceEnds(_)
                | Self::RetentionEnds(_)
        )
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// Of what it makes.
    pub(super) key: Key,
    pub(super) who: Who,
    pub(super) operation: Operation,
}

/// The deletion that a request led to, nothing, or the code of a refusal.
pub(super) type Outcome = Result<Option<Key>, &'static str>;
