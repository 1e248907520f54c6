//! The definitions of a blueprint on one cluster, for `slipway blueprint`.

use slipway_wire::placement::BlueprintDefinitions;

use crate::kind::{Cells, Row};
use crate::output::or_dash;

impl Row for BlueprintDefinitions {
    fn cells(&self) -> Cells {
        vec![
            ("CLUSTER", self.cluster.clone()),
            ("WANTED", or_dash(self.wanted_version.as_deref())),
            ("FOUND", or_dash(self.found_version.as_deref())),
            ("PHASE", self.phase.clone()),
            ("SINCE", or_dash(self.since.as_deref())),
            ("PROBLEM", or_dash(self.problem.as_deref())),
        ]
    }
}
