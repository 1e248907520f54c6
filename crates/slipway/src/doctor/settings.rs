//! Checks whether the settings are valid, and whether a variable is misspelt.

use super::finding::{Area, Finding};
use crate::config::InvalidConfig;
use crate::local::settings::warnings;

pub(super) fn inspect(invalid: Option<&InvalidConfig>) -> Vec<Finding> {
    let mut area = Area::new("config");
    match invalid {
        None => area.ok("settings", "they can be used"),
        Some(error) => area.problem(
            "settings",
            error.to_string(),
            "correct it; `slipway up --help` describes every setting",
        ),
    }
    for warning in warnings() {
        area.warning("environment", warning, "correct the name, or unset it");
    }
    area.into_findings()
}
