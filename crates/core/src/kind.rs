//! What all kinds that people manage by name have in common: an id, a revision,
//! and the refusal if there is none. Rules, use-cases, store and server handle
//! these parts once for every [`Kind`]; whatever differs stays with the kind.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use uuid::Uuid;

use crate::error::ErrorKind;
use crate::ids::Revision;
use crate::subject::Subject;

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
