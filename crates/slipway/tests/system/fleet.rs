//! Fleet, with the real binary.

mod templates;
mod tour;
