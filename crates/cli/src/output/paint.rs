//! Colours, added to text that is already laid out, so that they cannot move a
//! column. Only phases, states and headings get one: people look there first.

pub(crate) const GREEN: &str = "32";
const YELLOW: &str = "33";
pub(crate) const RED: &str = "31";
pub(crate) const BOLD: &str = "1";

/// Makes headings bold and colours the words for phases and states.
pub(crate) fn paint(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn line(line: &str) -> String {
    let heading = line.chars().any(|c| c.is_ascii_uppercase())
        && line.chars().all(|c| c.is_ascii_uppercase() || c == ' ');
    if heading {
        return coloured(BOLD, line);
    }
    let mut painted = String::with_capacity(line.len());
    // Keeps every space where it is.
    for word in line.split_inclusive(' ') {
        let bare = word.trim_end_matches([' ', ',', '.', ':']);
        match colour(bare) {
            Some(code) => painted.push_str(&word.replacen(bare, &coloured(code, bare), 1)),
            None => painted.push_str(word),
        }
    }
    painted
}

fn colour(word: &str) -> Option<&'static str> {
    match word {
        "Ready" | "healthy" | "acting" => Some(GREEN),
        "Failed" | "unreachable" | "observing" => Some(RED),
        "Pending" | "Provisioning" | "Enrolling" | "Deregistering" | "Deprovisioning"
        | "Deleting" | "frozen" => Some(YELLOW),
        _ => None,
    }
}

pub(crate) fn coloured(code: &str, text: &str) -> String {
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(text: &str) -> String {
        ["0", BOLD, GREEN, YELLOW, RED]
            .iter()
            .fold(text.to_owned(), |text, code| text.replace(&format!("\u{1b}[{code}m"), ""))
    }

    #[test]
    fn colours_move_nothing() {
        let text = "HANDLE  PHASE\nweb-1   Ready\nweb-2   Pending  x\n\nIt waits, Failed: no.";
        let painted = paint(text);
        assert_eq!(bare(&painted), text);
        for expected in [
            "\u{1b}[1mHANDLE  PHASE\u{1b}[0m",
            "\u{1b}[32mReady\u{1b}[0m\n",
            "\u{1b}[31mFailed\u{1b}[0m:",
        ] {
            assert!(painted.contains(expected), "{painted:?}");
        }
    }
}
