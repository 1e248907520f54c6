//! Removal: the one record of every deletion, what a request for one passes, protection,
//! and leaks, that is objects outside that no row claims, or the reverse.

pub mod approval;
pub mod brake;
pub mod cancel;
pub mod door;
pub mod event;
pub mod leak;
pub mod orphans;
pub mod plan;
pub mod protection;
pub mod purge;
pub mod record;
pub mod report;
pub mod request;
pub mod restore;
pub mod settings;
pub mod write;

pub use write::DeletionWrite;
