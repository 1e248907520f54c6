//! Files: objects declared as documents. [`apply`] makes the store agree with documents,
//! [`read`] shows objects as documents and what a source declared. A kind plugs in with an
//! implementation of [`kind::FileKind`] in `kinds` and a line in its table; its creates and
//! changes are the use-cases of its own room.

pub mod port;

pub mod apply;
mod declared;
pub mod faults;
pub mod kind;
mod kinds;
pub mod read;
