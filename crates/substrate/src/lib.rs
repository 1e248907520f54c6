//! The engines, which turn a rendered composite into running infrastructure.
//! Each engine implements the substrate port of the application and knows
//! nothing about the other engines, phases or the database.
//!
//! * [`crossplane`]: a composite on a management cluster.
//! * [`hetzner`]: a server in a project of Hetzner Cloud.
//! * [`local`]: a process on this machine, in a directory of its own.
//! * [`manual`]: a machine that somebody boots by hand.

pub mod crossplane;
pub mod hetzner;
pub mod local;
pub mod manual;
