//! Explanations ("why is it where it is"): one file for each kind, each a pure
//! function from what was read of it to an [`crate::operations::explanation::Explanation`].
//! They decide nothing and repeat no rule: what a resource waits for, and until
//! when that is normal, comes from [`crate::broker::waiting`].

mod containers;
mod deletion;
mod fleet;
mod leak;
mod node;
mod resource;
mod rollout;
mod tenants;
mod token;
mod topology;

pub use containers::{ClusterFacts, cluster, project};
pub use deletion::deletion;
pub use fleet::{FleetFacts, agent, generator, stack};
pub use leak::leak;
pub use node::node;
pub use resource::{Timeouts, attempt, quarantined, resource};
pub use rollout::rollout;
pub use tenants::{TenantFacts, job, tenant};
pub use token::token;
pub use topology::{WorkspaceFacts, workspace};

#[cfg(test)]
mod tests;
