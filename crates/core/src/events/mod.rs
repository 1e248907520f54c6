//! Events after they were announced: positions, cursors and what may be pruned.

pub mod positions;
pub mod unreadable;
