//! Starts the external servers and processes that tests need, and helps tests
//! to wait and observe.
//!
//! Owns: the life of every process it starts. Nothing that a test starts
//! through this crate outlives it, not even when the test process is killed.
//!
//! Must not: depend on another crate of ours, so that every crate can use it in
//! its tests; nor know the domain.

pub mod control_plane;
pub mod kube;
pub mod memory;
pub mod network;
pub mod ports;
pub mod postgres;
pub mod preload;
pub mod process;
pub mod random;
pub mod wait;
