//! Fleet, with the real binary.

mod many;
mod templates;
mod tour;
