//! The API description, generated from the table of routes: [`document`] is the
//! OpenAPI document for machines, [`page`] a page for people.

mod document;
mod page;
mod query;

pub use document::document;
pub(crate) use page::{machines, people, problem};
