//! A document in the chosen format.

use serde::Serialize;

use crate::arguments::Output;

/// The text of a document; `table` makes the one for people.
pub(crate) fn render<T: Serialize>(
    document: &T,
    output: Output,
    table: impl FnOnce(&T) -> String,
) -> String {
    match output {
        // What has a name was shown by it.
        Output::Table | Output::Wide | Output::Name => table(document),
        Output::Json => to_json(document),
        Output::JsonPath(template) => {
            // Only map keys that are not text could fail here; there are none.
            template.apply(&serde_json::to_value(document).unwrap_or_default())
        }
        Output::Yaml => to_yaml(document),
    }
}

/// A document as it is shown with `-o json`.
fn to_json(document: &impl Serialize) -> String {
    // Only map keys that are not text could fail here; there are none.
    serde_json::to_string_pretty(document).unwrap_or_default()
}

/// The same with `-o yaml`.
pub(crate) fn to_yaml(document: &impl Serialize) -> String {
    let text = serde_yaml_ng::to_string(document).unwrap_or_default();
    text.trim_end().to_owned()
}
