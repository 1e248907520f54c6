//! The engines: how a composite becomes something real. Each implements the
//! substrate port of the application and knows nothing of the others, of
//! phases, or of the database.
//!
//! * [`crossplane`]: a composite on a management cluster.
//! * [`local`]: a node is a process of this machine in a directory of its own.

pub mod crossplane;
pub mod local;
