//! Who gets every event, as `slipway event subscriptions` shows it.

use slipway_wire::api::Subscription;

use crate::kind::Row;
use crate::output::{or_dash, time_or_dash};

impl Row for Subscription {
    const HEADINGS: &'static [&'static str] =
        &["NAME", "POSITION", "BEHIND", "LAST DELIVERY", "FAILURES", "LAST ERROR"];

    fn line(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.position.to_string(),
            (self.last_position - self.position).to_string(),
            time_or_dash(self.delivered_at.as_ref()),
            self.failures.to_string(),
            or_dash(self.last_error.as_deref()),
        ]
    }
}
