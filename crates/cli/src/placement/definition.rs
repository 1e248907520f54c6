//! The definitions of a blueprint on one cluster, for `slipway blueprint`.

use slipway_wire::catalog::BlueprintDelivery;

use crate::kind::Row;
use crate::output::{or_dash, time_or_dash};

impl Row for BlueprintDelivery {
    const HEADINGS: &'static [&'static str] =
        &["CLUSTER", "WANTED", "FOUND", "PHASE", "SINCE", "PROBLEM"];

    fn line(&self) -> Vec<String> {
        vec![
            self.cluster.clone(),
            or_dash(self.wanted_version.as_deref()),
            or_dash(self.found_version.as_deref()),
            self.phase.clone(),
            time_or_dash(self.since.as_ref()),
            or_dash(self.problem.as_deref()),
        ]
    }
}
