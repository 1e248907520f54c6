//! Documents in formats for programs.

use serde::Serialize;

/// A document as it is shown with `-o json`.
pub(crate) fn to_json(document: &impl Serialize) -> String {
    // Only map keys that are not text could fail here; there are none.
    serde_json::to_string_pretty(document).unwrap_or_default()
}

/// The same with `-o yaml`.
pub(crate) fn to_yaml(document: &impl Serialize) -> String {
    let text = serde_yaml_ng::to_string(document).unwrap_or_default();
    text.trim_end().to_owned()
}
