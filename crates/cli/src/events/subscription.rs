//! Subscriptions as `slipway event subscriptions` shows them.

use slipway_wire::events::Subscription;

use crate::kind::{Cells, Row};
use crate::output::{or_dash, time_or_dash};

impl Row for Subscription {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("POSITION", self.position.to_string()),
            ("BEHIND", (self.last_position - self.position).to_string()),
            ("LAST DELIVERY", time_or_dash(self.published_at.as_ref())),
            ("FAILURES", self.failures.to_string()),
            ("LAST ERROR", or_dash(self.last_error.as_deref())),
        ]
    }
}
