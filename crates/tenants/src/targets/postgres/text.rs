//! Names and texts in statements that take no parameters.

/// An identifier. Names have letters, digits and underscores only; the quotes keep their case
/// and make words of SQL usable.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
