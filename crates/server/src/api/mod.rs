//! Our own API, `/api/v1`: one file per kind of thing, JSON in and out, an API
//! key on every route. [`convert`] is where the domain becomes documents; no
//! other file here builds one. Refusals are written by [`crate::error`].

mod routes;

mod control;
mod deletions;
mod events;
mod leaks;
mod loops;
mod nodes;
mod resources;
mod subscriptions;

mod convert;
mod list;

pub use convert::event as event_document;
pub(crate) use routes::routes;
