//! The project namespace on its cluster, as tables show it.

use slipway_wire::placement::{ClusterAssignment, ProviderStatus};

use crate::kind::{Cells, Detail, Facts, Row};
use crate::output::{optional_time, time};

impl Row for ClusterAssignment {
    fn cells(&self) -> Cells {
        vec![
            ("PROJECT", self.project_id.clone()),
            ("CLUSTER", self.cluster_id.clone()),
            ("PHASE", self.namespace_phase.clone()),
            ("NAMESPACE", self.namespace.clone()),
        ]
    }
}

impl Detail for ClusterAssignment {
    fn facts(&self) -> Facts {
        let providers: Vec<_> = self.providers.iter().map(provider).collect();
        vec![
            ("project", Some(self.project_id.clone())),
            ("cluster", Some(self.cluster_id.clone())),
            ("namespace", Some(self.namespace.clone())),
            ("phase", Some(self.namespace_phase.clone())),
            ("leaving since", optional_time(self.withdrawn_at.as_ref())),
            ("providers", Some(providers.join(", "))),
            ("problems", Some(self.problems.join("; "))),
            ("since", Some(time(&self.updated_at))),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

fn provider(found: &ProviderStatus) -> String {
    let problem = found.problem.as_ref().map(|problem| format!(" ({problem})"));
    format!("{} {}{}", found.provider, found.phase, problem.unwrap_or_default())
}
