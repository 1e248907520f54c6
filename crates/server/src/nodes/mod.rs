//! Nodes: the registry, bootstrap tokens issued by hand, and the protocol that
//! nodes speak ([`plexd`]).

mod plexd;
mod registry;
mod rows;
mod tokens;

pub(crate) use plexd::routes as plexd_routes;
pub(crate) use registry::document;
pub(crate) use rows::rows;
