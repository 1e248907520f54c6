//! Texts that people give us, checked once on entry: handles, labels, reasons.
//! Lengths are checked here because the two databases would not agree on them;
//! U+0000 is refused because PostgreSQL cannot store it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A text that breaks a rule, with the field it was given for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct InvalidText {
    pub field: String,
    pub problem: String,
}

impl InvalidText {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

/// The name of a resource slot: a DNS-1123 label, so that it can become part
/// of host names and object names without translation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Handle(String);

impl Handle {
    pub const MAX_LENGTH: usize = 63;

    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let valid = (1..=Self::MAX_LENGTH).contains(&text.len())
            && text.chars().all(|c| alphanumeric(c) || c == '-')
            && text.starts_with(alphanumeric)
            && text.ends_with(alphanumeric);
        if valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidText::new(
                "handle",
                "must be 1 to 63 lowercase letters, digits or hyphens, starting and ending with a letter or digit",
            ))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.0)
    }
}

/// Why somebody did something irreversible or forceful; kept in the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Reason(String);

impl Reason {
    pub const MAX_LENGTH: usize = 500;

    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(InvalidText::new("reason", "must say why, in at least one character"));
        }
        if trimmed.chars().count() > Self::MAX_LENGTH {
            return Err(InvalidText::new("reason", "must be at most 500 characters"));
        }
        if trimmed.contains('\0') {
            return Err(InvalidText::new("reason", "must not contain U+0000"));
        }
        Ok(Self(trimmed.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks what a person types once more before something that cannot be undone:
/// one of these names, which `expected` describes.
pub fn check_confirmation(typed: &str, names: &[&str], expected: &str) -> Result<(), InvalidText> {
    if names.contains(&typed) {
        return Ok(());
    }
    Err(InvalidText::new("confirm", format!("must be {expected}")))
}

/// Labels of a resource. Keys sort, so two equal sets render equally.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    pub const MAX_COUNT: usize = 64;
    const MAX_KEY: usize = 63;
    const MAX_VALUE: usize = 256;

    pub fn parse(labels: BTreeMap<String, String>) -> Result<Self, InvalidText> {
        let fault = Self::faults(&labels).next();
        match fault {
            Some(fault) => Err(fault),
            None => Ok(Self(labels)),
        }
    }

    /// What is wrong with these.
    pub fn faults(labels: &BTreeMap<String, String>) -> impl Iterator<Item = InvalidText> {
        let too_many = (labels.len() > Self::MAX_COUNT)
            .then(|| InvalidText::new("labels", "must be at most 64"));
        let wrong = labels.iter().take(Self::MAX_COUNT).filter_map(|(key, value)| {
            let key_valid = (1..=Self::MAX_KEY).contains(&key.len())
                && key
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
            if !key_valid {
                let shown: String = key.chars().filter(|c| !c.is_control()).take(63).collect();
                return Some(InvalidText::new(
                    format!("labels.{shown}"),
                    "must have a key of 1 to 63 letters, digits or - _ . /",
                ));
            }
            (value.chars().count() > Self::MAX_VALUE || value.contains('\0')).then(|| {
                InvalidText::new(
                    format!("labels.{key}"),
                    "must have a value of at most 256 characters without U+0000",
                )
            })
        });
        too_many.into_iter().chain(wrong)
    }

    pub fn as_map(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

/// Removes U+0000, which PostgreSQL cannot store, from a text from outside.
/// What the outside reports must never keep us from recording it.
pub fn storable(text: &str) -> String {
    text.replace('\0', "")
}

/// The same for every text in a document, keys included.
pub fn storable_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(storable(text)),
        Value::Array(items) => items.iter().map(storable_value).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, value)| (storable(key), storable_value(value))).collect()
        }
        other => other.clone(),
    }
}

/// Refuses a name that no row can have, before querying the database.
pub fn check_reference(field: &str, text: &str) -> Result<(), InvalidText> {
    if text.is_empty() || text.len() > 253 || text.chars().any(char::is_control) {
        return Err(InvalidText::new(field, "must be 1 to 253 bytes without control characters"));
    }
    Ok(())
}

/// `1 warning`, `2 warnings`: for a noun with a regular plural.
pub fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_a_dns_label() {
        for good in ["a", "web-1", "0x", &"a".repeat(63)] {
            assert!(Handle::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a_b", "a.b", "é", "a\0", &"a".repeat(64)] {
            assert_eq!(Handle::parse(bad).unwrap_err().field, "handle", "{bad:?}");
        }
    }

    #[test]
    fn what_the_world_says_can_be_stored() {
        let value = serde_json::json!({"a\u{0}": ["b\u{0}c", 1], "d": null});
        assert_eq!(storable_value(&value), serde_json::json!({"a": ["bc", 1], "d": null}));
    }

    #[test]
    fn a_reference_has_no_control_characters() {
        assert!(check_reference("project", "default").is_ok());
        for bad in ["", "a\0", "a\n", &"x".repeat(254)] {
            assert_eq!(check_reference("project", bad).unwrap_err().field, "project");
        }
    }

    #[test]
    fn a_reason_says_something() {
        assert_eq!(Reason::parse("  why  ").unwrap().as_str(), "why");
        for bad in ["", "   ", "a\0b", &"x".repeat(501)] {
            assert!(Reason::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_bad_label_is_named() {
        let labels = BTreeMap::from([("a b".to_owned(), "x".to_owned())]);
        assert_eq!(Labels::parse(labels).unwrap_err().field, "labels.a b");
        let labels = BTreeMap::from([("a".to_owned(), "x\0".to_owned())]);
        assert_eq!(Labels::parse(labels).unwrap_err().field, "labels.a");
    }
}
