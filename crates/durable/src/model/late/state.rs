//! A state of the model: the row, the object, the requests under way, the workers.
//!
//! A uid, a version or a content is only ever compared with the present one of the same
//! object or row, and none comes back. So a state keeps whether a value that was read or
//! sent is the present one, and nothing else.

use crate::model::state::{Level, Name};

/// A claim token. In an explored state it is a rank; 0 stands for none, or for any that
/// was lost.
pub(super) type Claim = u8;

/// Requests under way at once.
pub(super) const REQUESTS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Row {
    pub(super) wanted: Level,
    /// Of a shared object; a composite stays `Waiting`.
    pub(super) phase: Phase,
    pub(super) claim: Claim,
    pub(super) holder: Option<Name>,
    pub(super) due: bool,
    /// Something changed since the claim.
    pub(super) woken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Phase {
    Waiting,
    /// Resources that need it are admitted.
    Ready,
    /// Recorded before the first delete is sent.
    Releasing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Object {
    /// The claim that wrote it last.
    pub(super) writer: Claim,
    pub(super) content: Content,
}

/// What an object or a request carries: the token of a composite, the count of removals
/// of a shared object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Content {
    /// The one that the row has: the token in the registry, the recorded count.
    Present,
    /// The row has another by now: the token is revoked, the count was raised.
    Outdated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Request {
    pub(super) write: Write,
    pub(super) claim: Claim,
    pub(super) content: Content,
    /// Who waits for the answer.
    pub(super) waiter: Option<Name>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Write {
    Create,
    Update(Read),
    Delete(Read),
}

/// How the object is now, compared with how it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Read {
    Unchanged,
    /// The same uid, and another version.
    Written,
    /// Gone, or made anew.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Worker {
    Idle,
    /// The object, if there was one, and what it carried.
    Observed {
        claim: Claim,
        seen: Option<(Read, Content)>,
    },
    Waiting {
        claim: Claim,
    },
    /// The object was not as the request named it.
    Refused {
        claim: Claim,
        content: Content,
    },
    Answered {
        claim: Claim,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct State {
    pub(super) row: Row,
    pub(super) object: Option<Object>,
    pub(super) requests: [Option<Request>; REQUESTS],
    pub(super) workers: [Worker; 2],
    /// A late request changed what a newer claim had settled on without a write: a
    /// create made the object that was deleted or absent, or an update reached the version
    /// that the newer claim saw. The loop finds it by `Verify`.
    pub(super) drifted: bool,
}

impl State {
    /// Declared, due, and nobody works on it.
    pub(super) const fn initial() -> Self {
        Self {
            row: Row {
                wanted: Level::There,
                phase: Phase::Waiting,
                claim: 1,
                holder: None,
                due: true,
                woken: false,
            },
            object: None,
            requests: [None; REQUESTS],
            workers: [Worker::Idle; 2],
            drifted: false,
        }
    }

    pub(super) const fn worker(&self, name: Name) -> Worker {
        self.workers[name.index()]
    }

    pub(super) const fn set(&mut self, name: Name, worker: Worker) {
        self.workers[name.index()] = worker;
    }

    /// The object was written: nobody has read its present version.
    pub(super) fn outdate_versions(&mut self) {
        self.each_read(|read| {
            if *read == Read::Unchanged {
                *read = Read::Written;
            }
        });
    }

    /// The object is another one, or none.
    pub(super) fn outdate_uids(&mut self) {
        self.each_read(|read| *read = Read::Gone);
    }

    fn each_read(&mut self, mut change: impl FnMut(&mut Read)) {
        for request in self.requests.iter_mut().flatten() {
            if let Write::Update(read) | Write::Delete(read) = &mut request.write {
                change(read);
            }
        }
        for worker in &mut self.workers {
            if let Worker::Observed { seen: Some((read, _)), .. } = worker {
                change(read);
            }
        }
    }

    /// The row has a new content, which nothing carries yet.
    pub(super) fn outdate_contents(&mut self) {
        if let Some(object) = &mut self.object {
            object.content = Content::Outdated;
        }
        for request in self.requests.iter_mut().flatten() {
            request.content = Content::Outdated;
        }
        for worker in &mut self.workers {
            if let Worker::Observed { seen: Some((_, content)), .. }
            | Worker::Refused { content, .. } = worker
            {
                *content = Content::Outdated;
            }
        }
    }

    /// The row has again what the object carries.
    pub(super) fn revert_content(&mut self) {
        self.outdate_contents();
        if let Some(object) = &mut self.object {
            object.content = Content::Present;
        }
    }

    /// The state with its claims renamed to their ranks, and requests and workers in
    /// order. This is sound: the protocol only compares claims, and a new one is above
    /// all others; the requests, and the two workers, differ in nothing but what the
    /// state says of them.
    pub(super) fn canonical(self) -> Self {
        let mirrored = self.mirrored();
        self.ranked().min(mirrored.ranked())
    }

    fn ranked(mut self) -> Self {
        let mut held = [false; 64];
        self.each_claim(|claim| held[usize::from(*claim)] = true);
        let mut ranks = [0; 64];
        let mut rank = 0;
        for (rank_of, _) in ranks.iter_mut().zip(held).skip(1).filter(|(_, held)| *held) {
            rank += 1;
            *rank_of = rank;
        }
        self.each_claim(|claim| *claim = ranks[usize::from(*claim)]);
        self.requests.sort_unstable();
        self
    }

    /// The same with the names of the workers exchanged.
    fn mirrored(mut self) -> Self {
        let other = |name: &mut Name| {
            *name = match name {
                Name::A => Name::B,
                Name::B => Name::A,
            };
        };
        self.workers.swap(0, 1);
        self.row.holder.iter_mut().for_each(other);
        let waiters = self.requests.iter_mut().flatten().filter_map(|found| found.waiter.as_mut());
        waiters.for_each(other);
        self
    }

    pub(super) fn each_claim(&mut self, mut at: impl FnMut(&mut Claim)) {
        at(&mut self.row.claim);
        self.object.iter_mut().for_each(|object| at(&mut object.writer));
        self.requests.iter_mut().flatten().for_each(|request| at(&mut request.claim));
        for worker in &mut self.workers {
            match worker {
                Worker::Idle => {}
                Worker::Observed { claim, .. }
                | Worker::Waiting { claim }
                | Worker::Refused { claim, .. }
                | Worker::Answered { claim } => at(claim),
            }
        }
    }
}
