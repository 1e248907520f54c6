//! Engine `manual`: a machine that somebody boots by hand, such as bare metal or a VM of
//! another tool. Nothing can be observed there, so a composite is a row: it is ready from
//! its apply on, and gone when somebody says so, or with its delete where its parameters
//! say that nobody has to.
//!
//! It carries no token, since nothing but a person brings one to the machine. The rows are
//! in the database, so every replica serves every cluster of this engine, and there is no
//! high-water mark to compare: a restored database brings its machines with it.

mod engine;

pub use engine::ManualSubstrate;
