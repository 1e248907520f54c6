//! What all kinds that people manage by name have in common: an id, a revision,
//! and the refusal if there is none. Rules, use-cases, store and server handle
//! these parts once for every [`Kind`]; whatever differs stays with the kind.
//!
//! A rule of a kind is a pure function from a snapshot to a commit or a refusal,
//! in the file of the kind. The snapshot has what a decision may know, loaded
//! under lock in the transaction that will write it; a part is `None` if there is
//! no live row. The functions here are what the rules share: the audit entry, and
//! refusals that differ by a word. Deletions have one rule for all kinds,
//! [`crate::deletion::request`].

use std::fmt::{Debug, Display};
use std::str::FromStr;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::ids::Revision;
use crate::precondition::Expected;
use crate::subject::Subject;
use crate::time::Timestamp;

/// An aggregate that is created, shown, listed, changed and removed on request.
pub trait Kind: Debug + Clone + Send + Sync + 'static {
    type Id: Copy + Debug + Display + FromStr + Into<Uuid> + Into<Subject> + Send + Sync + 'static;

    /// Its noun in messages and audit entries.
    const KIND: &'static str;
    /// The refusal if there is none.
    const MISSING: ErrorKind;

    fn id(&self) -> Self::Id;

    fn revision(&self) -> Revision;
}

/// Implements [`Kind`] for an aggregate with the fields `id` and `revision`.
macro_rules! kind {
    ($aggregate:ty, $id:ty, $missing:ident) => {
        impl $crate::kind::Kind for $aggregate {
            type Id = $id;
            const KIND: &'static str = <$id>::KIND;
            const MISSING: $crate::error::ErrorKind = $crate::error::ErrorKind::$missing;

            fn id(&self) -> $id {
                self.id
            }

            fn revision(&self) -> $crate::ids::Revision {
                self.revision
            }
        }
    };
}

pub(crate) use kind;

pub(crate) fn about<K: Kind>(subject: &K) -> About {
    About::new(subject.id())
}

/// One write with its audit entry.
pub(crate) fn audited(
    write: impl Into<Write>,
    verb: &'static str,
    about: About,
    actor: &Actor,
    now: Timestamp,
    details: Value,
) -> Commit {
    let entry = AuditEntry::new(verb, actor, about, now).with(details);
    Commit { writes: vec![write.into()], audit: vec![entry], ..Commit::default() }
}

/// The request names nothing that exists.
pub(crate) fn unknown(error: ErrorKind, kind: &str) -> Refusal {
    Refusal::new(error, format!("there is no such {kind}; check its name or id"))
}

/// The row of the snapshot, if the caller expects its revision.
pub(crate) fn existing<K: Kind>(found: &Option<K>, expected: Expected) -> Result<&K, Refusal> {
    let row = found.as_ref().ok_or_else(|| unknown(K::MISSING, K::KIND))?;
    expected.check(K::KIND, row.revision())?;
    Ok(row)
}

/// Refuses if the snapshot of a create found the holder of the name.
pub(crate) fn free<K: Kind>(holder: &Option<K>, field: &str, name: &str) -> Result<(), Refusal> {
    let Some(holder) = holder else { return Ok(()) };
    let id: Uuid = holder.id().into();
    Err(Refusal::new(
        ErrorKind::NameTaken,
        format!("there is a {} `{name}` already; choose another name", K::KIND),
    )
    .at(field)
    .with(json!({ "id": id })))
}
