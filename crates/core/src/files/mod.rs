//! Files: objects that people declare as documents. [`document`] has the kinds and how an
//! object is addressed, [`fields`] decides what a document changes and who owns which field.

pub mod document;
pub mod fault;
pub mod fields;
pub mod write;

pub use write::FilesWrite;
