//! The names and texts of the catalog, checked once on entry.

use std::fmt;

use serde::Serialize;
use uuid::Uuid;

use crate::text::{Handle, InvalidText};

/// The name of a project, cloud, credential, cluster or blueprint: a DNS-1123
/// label. A text that parses as a UUID is no name: wherever a name is accepted
/// an id is accepted too, and one text must not mean two things.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Name(String);

impl Name {
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidText> {
        let label =
            Handle::parse(text).map_err(|invalid| InvalidText::new(field, invalid.problem))?;
        if Uuid::try_parse(text).is_ok() {
            return Err(InvalidText::new(field, "must not have the form of a UUID; choose a name"));
        }
        Ok(Self(label.as_str().to_owned()))
    }

    /// For rows: the seed is configured and may have names of another shape.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One line of text of `least` to `most` characters, without control characters.
pub fn line(field: &str, text: &str, least: usize, most: usize) -> Result<String, InvalidText> {
    let length = text.chars().count();
    if !(least..=most).contains(&length) || text.chars().any(char::is_control) {
        return Err(InvalidText::new(
            field,
            format!("must be {least} to {most} characters without control characters"),
        ));
    }
    Ok(text.to_owned())
}

/// A text of several lines, at most `most` bytes, without U+0000.
pub fn document(field: &str, text: &str, most: usize) -> Result<String, InvalidText> {
    if text.len() > most || text.contains('\0') {
        return Err(InvalidText::new(
            field,
            format!("must be at most {most} bytes without U+0000"),
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_never_reads_as_an_id() {
        for bad in ["", "A", "a_b", "-a", "a\0", "0192f0c1-2b3c-7d4e-8f50-123456789abc"] {
            assert_eq!(Name::parse("name", bad).unwrap_err().field, "name", "{bad:?}");
        }
        assert_eq!(Name::parse("name", "team-a").unwrap().as_str(), "team-a");
    }

    proptest! {
        #[test]
        fn whatever_is_taken_is_a_label_and_no_id(text in ".{0,70}") {
            if let Ok(name) = Name::parse("name", &text) {
                prop_assert!(Handle::parse(name.as_str()).is_ok());
                prop_assert!(Uuid::try_parse(name.as_str()).is_err());
            }
        }

        #[test]
        fn whatever_is_taken_can_be_stored(text in any::<String>()) {
            if let Ok(taken) = document("xrd", &text, 64) {
                prop_assert!(!taken.contains('\0') && taken.len() <= 64);
            }
            if let Ok(taken) = line("description", &text, 0, 16) {
                prop_assert!(!taken.contains('\0') && taken.chars().count() <= 16);
            }
        }
    }
}
