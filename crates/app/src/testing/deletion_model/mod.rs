//! Random sequences of operations by several callers, some of them at the same moment,
//! against a model of what the documents promise about deletions.
//!
//! After every request the outcome and what the rows say must be those of the model; of two
//! operations at once, those of one of the two orders. After each sequence every deletion
//! has announced the states that it entered, each once and in order.

mod generate;
mod model;
mod request;
mod run;
mod sequence;

pub use generate::Dice;
pub use sequence::deletion_model;
