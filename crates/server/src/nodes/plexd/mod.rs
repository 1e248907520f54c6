//! The node protocol, `/v1`. Both generations of plexd and our own agent speak
//! it. Its errors are `{code, message}`, unknown fields of bodies are ignored
//! (an agent may be newer than the server), and what this server does not
//! offer is 501 with a code that names it, which agents take as "not here".
//! `docs/nodes.md` is this protocol as it is served.

mod convert;
mod error;
mod nodes;
mod register;
mod routes;

pub(crate) use routes::routes;
