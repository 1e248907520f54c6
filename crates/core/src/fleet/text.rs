//! The names and texts of Fleet, checked once on entry. Names are wider than elsewhere, since
//! existing clients of the protocol chose theirs freely.

use std::fmt;

use serde::Serialize;
use uuid::Uuid;

use crate::catalog::name::line;
use crate::text::InvalidText;

/// The name of a generator, stack, template, agent or of an agent's cluster. A text that
/// parses as a UUID is no name: wherever a name is accepted an id is accepted too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct FleetName(String);

impl FleetName {
    pub const MAX_LENGTH: usize = 255;

    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidText> {
        let name = line(field, text, 1, Self::MAX_LENGTH)?;
        if name.trim() != name {
            return Err(InvalidText::new(field, "must not begin or end with a space"));
        }
        if Uuid::try_parse(text).is_ok() {
            return Err(InvalidText::new(field, "must not have the form of a UUID; choose a name"));
        }
        Ok(Self(name))
    }

    /// For rows: they were checked when written.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FleetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The longest description, in bytes.
pub const DESCRIPTION_MAX: usize = 4_096;

/// A description of several lines.
pub fn description(text: &str) -> Result<String, InvalidText> {
    crate::catalog::name::document("description", text, DESCRIPTION_MAX)
}

/// The longest label, annotation key and annotation value, in characters.
pub const TAG_MAX: usize = 64;

/// A label, or the key or value of an annotation: one word.
pub fn tag(field: &str, text: &str) -> Result<String, InvalidText> {
    let length = text.chars().count();
    let is_word = |c: char| !c.is_whitespace() && !c.is_control();
    if (1..=TAG_MAX).contains(&length) && text.chars().all(is_word) {
        return Ok(text.to_owned());
    }
    let problem =
        format!("must be 1 to {TAG_MAX} characters without white space or control characters");
    Err(InvalidText::new(field, problem))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_one_line_and_no_id() {
        for good in ["web", "Über uns", "a/b:c", &"x".repeat(255)] {
            assert_eq!(FleetName::parse("name", good).unwrap().as_str(), good);
        }
        let id = "0192f0c1-2b3c-7d4e-8f50-123456789abc";
        for bad in ["", " ", " a", "a ", "a\nb", "a\0", id, &"x".repeat(256)] {
            assert_eq!(FleetName::parse("name", bad).unwrap_err().field, "name", "{bad:?}");
        }
    }

    #[test]
    fn a_tag_is_a_word() {
        assert_eq!(tag("label", "env=prod").unwrap(), "env=prod");
        for bad in ["", "a b", "a\tb", "\0", &"x".repeat(65)] {
            assert_eq!(tag("label", bad).unwrap_err().field, "label", "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_taken_can_be_stored_and_shown(text in any::<String>()) {
            if let Ok(name) = FleetName::parse("name", &text) {
                prop_assert!(!name.as_str().chars().any(char::is_control));
                prop_assert!((1..=255).contains(&name.as_str().chars().count()));
            }
            if let Ok(tag) = tag("label", &text) {
                prop_assert!(!tag.chars().any(char::is_control) && tag.chars().count() <= TAG_MAX);
            }
        }
    }
}
