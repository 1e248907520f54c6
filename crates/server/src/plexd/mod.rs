//! The node protocol, `/v1`. Both generations of plexd and our own agent speak
//! it. Its errors are `{code, message}`, unknown fields of bodies are ignored
//! (an agent may be newer than the server), and what this server does not
//! offer is 501 with a code that names it, which agents take as "not here".
//!
//! Addresses of a mesh are allocated together with meshes, a later capability:
//! until then a node gets an empty address and no peers.

mod error;
mod nodes;
mod register;
mod routes;

pub(crate) use routes::routes;
