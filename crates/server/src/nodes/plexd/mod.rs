//! The node protocol, `/v1`. Both generations of plexd and our own agent speak
//! it. Its errors are `{code, message}`. Unknown fields of bodies are ignored,
//! because an agent may be newer than the server. A feature that this server
//! lacks is 501 with a code that names it, and agents continue without.
//! `docs/nodes.md` documents the protocol as it is served.

mod convert;
mod error;
mod nodes;
mod register;
mod routes;

pub(crate) use routes::routes;
