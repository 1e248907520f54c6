//! Documents: applying them, showing objects as documents, and what sources declared.

mod apply;
mod document;
mod faults;
mod objects;
mod rows;
pub(crate) mod spec;

pub(crate) use rows::rows;
