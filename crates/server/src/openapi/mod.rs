//! The API description, from the table of routes: [`document`] makes OpenAPI of
//! it for machines, [`page`] a page for people.

mod document;
mod page;
mod query;

pub use document::document;
pub(crate) use page::{machines, people, problem};
