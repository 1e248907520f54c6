//! A state of the model: the row, the workers, the outside world.

/// What is wanted, recorded or actual: something is there, or it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Level {
    Gone,
    There,
}

impl Level {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Gone => Self::There,
            Self::There => Self::Gone,
        }
    }
}

/// One of the two workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Name {
    A,
    B,
}

impl Name {
    pub(super) const BOTH: [Self; 2] = [Self::A, Self::B];

    pub(super) const fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }
}

/// A claim token, wake or revision. In an explored state it is a rank.
pub(super) type Counter = u16;

/// When the row is due: `due_at`, as the time left until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Due {
    WhenWoken,
    In(u8),
}

impl Due {
    pub(super) const NOW: Self = Self::In(0);
}

/// The row in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Row {
    /// What the requester asked for.
    pub(super) wanted: Level,
    /// What a worker last recorded of the outside, like a phase.
    pub(super) recorded: Level,
    pub(super) revision: Counter,
    pub(super) due: Due,
    pub(super) wake: Counter,
    pub(super) claimed_wake: Counter,
    pub(super) claim_token: Counter,
    pub(super) claimed_by: Option<Name>,
    /// The time left of the lease; 0 means that it expired and was not released.
    pub(super) lease: Option<u8>,
}

/// Where a worker is, and what it remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Worker {
    /// Dead; it forgot everything.
    Down,
    Idle,
    /// Has noted the time, and sends its claim.
    Asked {
        lease: u8,
    },
    Claimed {
        held: Leased,
    },
    Loaded {
        held: Leased,
        wanted: Level,
        recorded: Level,
    },
    /// Will create the object, and records the intent first.
    Intending {
        held: Leased,
    },
    /// In the transaction of the intent: passed the fence, wrote nothing yet.
    Fenced {
        held: Leased,
    },
    /// About to act on what it observed.
    Ready {
        held: Leased,
        seen: Level,
        then: Then,
    },
    Acting {
        held: Leased,
        seen: Level,
        then: Then,
    },
    /// About to record what it observed, and to release the claim or not.
    Recording {
        held: Leased,
        seen: Level,
        end: End,
    },
    /// About to release the claim, with nothing to record.
    Releasing {
        claim: Counter,
        due: Due,
    },
}

/// What a worker knows of its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Leased {
    pub(super) claim: Counter,
    /// The lease by the worker's own clock. Reset to 0 once nothing reads it
    /// any more, so that states that behave alike are equal.
    pub(super) lease: u8,
    /// The revision read; 0 before that.
    pub(super) revision: Counter,
}

/// What becomes of the claim of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum End {
    Release(Due),
    /// Its action was not answered: the lease has to end.
    Lapse,
}

/// How a tick ends after its action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Then {
    Record,
    Release,
}

/// An outside action under way, with the claim it is done under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Action {
    /// None once its worker has died.
    pub(super) worker: Option<Name>,
    pub(super) claim: Counter,
    pub(super) target: Level,
    /// The time left until its deadline.
    pub(super) left: u8,
}

/// A renewal under way, beside whatever its worker does meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Renewal {
    pub(super) claim: Counter,
    /// The lease that it grants, by the worker's own clock.
    pub(super) lease: u8,
    pub(super) stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// The statement is under way; it outlives its worker.
    Sent,
    /// It succeeded, and its worker does not know yet.
    Renewed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) row: Row,
    pub(super) workers: [Worker; 2],
    pub(super) renewals: [Option<Renewal>; 2],
    /// What really exists outside.
    pub(super) actual: Level,
    pub(super) action: Option<Action>,
}

impl Worker {
    /// The claim that it believes it holds.
    pub(super) const fn claim(&self) -> Option<Counter> {
        match self {
            Self::Down | Self::Idle | Self::Asked { .. } => None,
            Self::Releasing { claim, .. } => Some(*claim),
            Self::Claimed { held }
            | Self::Loaded { held, .. }
            | Self::Intending { held }
            | Self::Fenced { held }
            | Self::Ready { held, .. }
            | Self::Acting { held, .. }
            | Self::Recording { held, .. } => Some(held.claim),
        }
    }

    pub(super) const fn leased_mut(&mut self) -> Option<&mut Leased> {
        match self {
            Self::Down | Self::Idle | Self::Asked { .. } | Self::Releasing { .. } => None,
            Self::Claimed { held }
            | Self::Loaded { held, .. }
            | Self::Intending { held }
            | Self::Fenced { held }
            | Self::Ready { held, .. }
            | Self::Acting { held, .. }
            | Self::Recording { held, .. } => Some(held),
        }
    }

    /// One tick of its own clock.
    pub(super) const fn pass_time(&mut self) {
        if let Self::Asked { lease } = self {
            *lease = lease.saturating_sub(1);
        } else if let Some(held) = self.leased_mut() {
            held.lease = held.lease.saturating_sub(1);
        }
    }
}

impl State {
    /// Declared, due, and nobody works on it.
    pub(super) const fn initial() -> Self {
        Self {
            row: Row {
                wanted: Level::There,
                recorded: Level::Gone,
                revision: 1,
                due: Due::NOW,
                wake: 1,
                claimed_wake: 0,
                claim_token: 0,
                claimed_by: None,
                lease: None,
            },
            workers: [Worker::Idle; 2],
            renewals: [None; 2],
            actual: Level::Gone,
            action: None,
        }
    }

    pub(super) const fn worker(&self, name: Name) -> &Worker {
        &self.workers[name.index()]
    }

    pub(super) const fn worker_mut(&mut self, name: Name) -> &mut Worker {
        &mut self.workers[name.index()]
    }

    /// The state with its counters renamed to their ranks.
    ///
    /// This is sound, because the protocol does only two things with a counter:
    /// it compares it for equality with an earlier value of the same counter, and
    /// it adds one, which yields a value that nobody holds. Ranks preserve both.
    pub(super) fn canonical(mut self) -> Self {
        self.row.wake = Counter::from(self.row.wake != self.row.claimed_wake);
        self.row.claimed_wake = 0;

        let [a, b] = self.workers.map(|worker| worker.claim());
        let [c, d] = self.renewals.map(|renewal| renewal.map(|renewal| renewal.claim));
        let claims = [a, b, c, d, self.action.map(|action| action.claim)];
        let rank = |claim| rank_below(claim, claims, self.row.claim_token);
        for worker in &mut self.workers {
            if let Worker::Releasing { claim, .. } = worker {
                *claim = rank(*claim);
            } else if let Some(held) = worker.leased_mut() {
                held.claim = rank(held.claim);
            }
        }
        if let Some(action) = &mut self.action {
            action.claim = rank(action.claim);
        }
        for renewal in self.renewals.iter_mut().flatten() {
            renewal.claim = rank(renewal.claim);
        }
        self.row.claim_token = NEWEST;

        // A revision is only ever compared with the row's current one.
        let current = self.row.revision;
        for held in self.workers.iter_mut().filter_map(Worker::leased_mut) {
            held.revision = if held.revision == current { NEWEST } else { 0 };
        }
        self.row.revision = NEWEST;
        self
    }
}

/// The rank of the row's own value, above those of the five that may be held.
const NEWEST: Counter = 5;

/// The rank of a held value: the top rank minus the number of different newer held
/// values. It preserves which of two outdated claims is older, to tell them apart.
fn rank_below(claim: Counter, held: [Option<Counter>; 5], current: Counter) -> Counter {
    if claim == current {
        return NEWEST;
    }
    let mut newer = 0;
    for (index, other) in held.iter().enumerate() {
        let repeated = held[..index].contains(other);
        if other.is_some_and(|other| other > claim && other != current) && !repeated {
            newer += 1;
        }
    }
    NEWEST - 1 - newer
}
