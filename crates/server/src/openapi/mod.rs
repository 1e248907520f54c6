//! The API description, generated from the table of routes: [`document`] is the
//! OpenAPI document for machines, [`page`] a page for people.

mod document;
mod example;
mod page;
mod query;
mod texts;

pub use document::{document, metadata_schema};
pub(crate) use page::{home, machines, people, problem};
