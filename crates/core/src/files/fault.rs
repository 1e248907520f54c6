//! What an apply could not apply: files that cannot be read, and documents that were refused.
//! The last apply of a source records them, the next one replaces or clears them.

use serde::{Deserialize, Serialize};

/// The most faults of a source that are kept; the others are counted.
pub const MOST_FAULTS: usize = 100;
/// The most characters that are kept of each text.
const MOST_CHARACTERS: usize = 512;

/// Why something in a file was not applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub file: String,
    pub line: Option<u32>,
    pub code: String,
    pub message: String,
}

/// The faults of one apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// The first ones.
    pub kept: Vec<Fault>,
    /// How many there were.
    pub total: u32,
}

impl Faults {
    /// Keeps as much as a row may have. `total` is what the sender counted.
    pub fn new(given: Vec<Fault>, total: u32) -> Self {
        let count = u32::try_from(given.len()).unwrap_or(u32::MAX);
        let kept = given.into_iter().take(MOST_FAULTS).map(|fault| Fault {
            file: short(&fault.file),
            line: fault.line,
            code: short(&fault.code),
            message: short(&fault.message),
        });
        Self { kept: kept.collect(), total: total.max(count) }
    }

    pub const fn is_empty(&self) -> bool {
        self.total == 0
    }
}

/// The beginning of a text, without characters that no database keeps or no terminal should
/// get.
fn short(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(MOST_CHARACTERS).map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Fault {
        Fault { file: text.to_owned(), line: Some(1), code: "c".to_owned(), message: text.into() }
    }

    #[test]
    fn a_row_is_bounded_whatever_is_sent() {
        let faults = Faults::new(vec![fault(&"ü\0".repeat(5_000)); 1_000], 0);
        assert_eq!((faults.kept.len(), faults.total), (MOST_FAULTS, 1_000));
        let kept = &faults.kept[0];
        assert_eq!(kept.message.chars().count(), MOST_CHARACTERS);
        assert!(!kept.file.contains('\0'));
    }

    #[test]
    fn the_sender_may_count_more_than_it_sends() {
        assert_eq!(Faults::new(vec![fault("a")], 7).total, 7);
        assert!(Faults::new(Vec::new(), 0).is_empty());
    }
}
