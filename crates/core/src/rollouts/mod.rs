//! Roll-outs: one change brought to many members, in order and within limits. What a change
//! is and when a member is healthy, the owner of the members says; order, limits, pauses and
//! the way back are the same for all.

pub mod event;
pub mod next;
pub mod record;
pub mod rules;
pub mod write;

pub use write::RolloutsWrite;
