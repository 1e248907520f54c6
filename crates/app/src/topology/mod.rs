//! Workspaces: declared, scaled, replaced and taken down. What a gate asks about the provider is
//! gathered here, before the decision that it guards.

pub mod apply;
pub mod inventory;
pub mod plan;
pub mod port;
pub(crate) mod rollout;
pub mod run;
pub mod servers;
pub(crate) mod teardown;
pub mod workspaces;
