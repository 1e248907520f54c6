//! The API description, generated from the table of routes: [`document`] is the
//! OpenAPI document for machines, [`page`] a page for people.

mod document;
mod example;
mod page;
mod query;
mod texts;

pub(crate) use document::{DOCUMENT_SCHEMA, schema};
pub use document::{document, document_schema, metadata_schema};
pub(crate) use page::{home, machines, people, problem};
