//! Our own API, `/api/v1`: one file per kind of thing, JSON in and out, an API
//! key on every route. [`convert`] and, for the catalog, [`documents`] are
//! where the domain becomes documents; no other file here builds one. Refusals are written by [`crate::error`].

mod guard;
mod routes;

mod audit;
mod blueprints;
mod clouds;
mod clusters;
mod control;
mod credentials;
mod deletions;
mod events;
mod explain;
mod keys;
mod labels;
mod leaks;
mod loops;
mod nodes;
mod projects;
mod resources;
mod subscriptions;
mod tokens;

mod convert;
mod documents;
mod list;

pub use convert::event as event_document;
pub(crate) use routes::routes;
pub use routes::{Route, TABLE};
