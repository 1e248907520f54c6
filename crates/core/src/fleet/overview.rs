//! How agents and stacks are doing, for people.

use crate::closed_set::closed_set;
use crate::fleet::agent::Agent;
use crate::fleet::report::HealthStatus;
use crate::ids::DeploymentObjectId;
use crate::time::Timestamp;

/// One agent, with what it still has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentOverview {
    pub agent: Agent,
    /// Stacks whose newest object it did not report as deployed, and markers that it owes.
    pub pending: i64,
    /// Objects that it holds in this health.
    pub degraded: i64,
    pub failing: i64,
    pub last_report_at: Option<Timestamp>,
}

/// On how many agents an object is how healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectHealthCount {
    pub object_id: DeploymentObjectId,
    pub healthy: i64,
    pub degraded: i64,
    pub failing: i64,
}

impl ObjectHealthCount {
    /// The worst that an agent sees; unknown if none sees anything.
    pub fn status(&self) -> HealthStatus {
        worst([
            (self.failing > 0).then_some(HealthStatus::Failing),
            (self.degraded > 0).then_some(HealthStatus::Degraded),
            (self.healthy > 0).then_some(HealthStatus::Healthy),
        ])
    }
}

/// The worst of these; unknown if there is none.
pub fn worst(seen: impl IntoIterator<Item = Option<HealthStatus>>) -> HealthStatus {
    let order = [HealthStatus::Failing, HealthStatus::Degraded, HealthStatus::Healthy];
    let seen: Vec<_> = seen.into_iter().flatten().collect();
    order.into_iter().find(|status| seen.contains(status)).unwrap_or(HealthStatus::Unknown)
}

closed_set!(
    /// Who made an audit entry, in the words of Fleet's protocol.
    ActorType {
        Admin => "admin",
        Agent => "agent",
        Generator => "generator",
        System => "system",
    }
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::uuid;

    #[test]
    fn the_worst_counts() {
        let of = |healthy, degraded, failing| {
            let object_id = DeploymentObjectId::new(uuid(1));
            ObjectHealthCount { object_id, healthy, degraded, failing }.status()
        };
        assert_eq!(of(0, 0, 0), HealthStatus::Unknown);
        assert_eq!(of(3, 0, 0), HealthStatus::Healthy);
        assert_eq!(of(3, 1, 0), HealthStatus::Degraded);
        assert_eq!(of(3, 1, 1), HealthStatus::Failing);
    }
}
