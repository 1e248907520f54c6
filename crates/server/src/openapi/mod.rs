//! What the API is, told from the code: [`operations`] says of every route of
//! the table what goes in and comes out, [`document`] makes OpenAPI of it, and
//! [`page`] a page for people. A test holds the two tables against each other,
//! so a route without a description does not pass.

mod document;
mod operation;
mod operations;
mod page;

pub use document::document;
pub(crate) use page::{machines, people, problem};
