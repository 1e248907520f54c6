//! Tenants: databases of customers, made and kept by jobs and tasks. A *profile* says where
//! and how, a *tenant* is one database in a project, a *job* is one try to make it. The states
//! of a job are those of the library `slipway-tenants`, which runs it; a tenant has the state
//! of its last job. A *task* is what is done to a finished tenant: close, reopen, destroy,
//! migrate.

pub mod blockers;
pub mod event;
pub mod export;
pub mod job;
pub mod profile;
pub mod task;
pub mod tenant;
pub mod waiting;
pub mod write;

pub use write::TenantsWrite;
