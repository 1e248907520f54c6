//! The catalog: projects, clouds, credentials, blueprints, labels. One file per
//! kind holds its handlers and its document.

mod blueprints;
mod clouds;
mod credentials;
mod labels;
mod projects;
mod rows;

pub use blueprints::submitted_content;
pub(crate) use blueprints::version_document;
pub(crate) use rows::rows;
