//! Checks that the table of invariants in `ARCHITECTURE.md` names tests that
//! exist.
//!
//! The section `## Invariants` has a table with a column "proved by". Each row
//! names there, between backticks, the functions that prove it, or says "later"
//! as long as its part is not built.

use std::collections::HashSet;

use super::documents::code_spans;
use super::tree::Tree;

const DOCUMENT: &str = "ARCHITECTURE.md";
const SECTION: &str = "## Invariants";
const COLUMN: &str = "proved by";

/// Rows of the table that prove nothing. Without the document there is nothing to check.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let Some(text) = tree.text(DOCUMENT) else {
        return Vec::new();
    };
    let functions = functions(tree);
    let mut wrong = Vec::new();
    let mut column = None;
    let mut rows = 0;
    for (number, line) in section(text) {
        if !line.trim_start().starts_with('|') {
            column = None;
            continue;
        }
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let Some(column) = column else {
            column = cells.iter().position(|cell| cell.eq_ignore_ascii_case(COLUMN));
            continue;
        };
        if cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':' | ' '))) {
            continue;
        }
        rows += 1;
        let proof = cells.get(column).copied().unwrap_or_default();
        let later = proof.split(|c: char| !c.is_alphanumeric()).any(|word| word == "later");
        let named: Vec<&str> = code_spans(proof).filter_map(function_name).collect();
        if named.is_empty() && !later {
            wrong.push(format!("{DOCUMENT}:{number}: names no test and does not say \"later\""));
        }
        for name in named.into_iter().filter(|name| !later && !functions.contains(name)) {
            wrong.push(format!("{DOCUMENT}:{number}: there is no `fn {name}` under crates/"));
        }
    }
    if rows == 0 {
        wrong.push(format!("{DOCUMENT}: no table with a column \"{COLUMN}\" under \"{SECTION}\""));
    }
    wrong
}

/// The numbered lines of the section, up to the next heading of its level.
fn section(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .skip_while(|(_, line)| !line.starts_with(SECTION))
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "))
}

/// The function of `name`, `path::name` or `name()`; `None` for other things.
fn function_name(span: &str) -> Option<&str> {
    let name = span.trim_end_matches("()").rsplit("::").next()?;
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    is_name.then_some(name)
}

/// The names of all functions under `crates/`.
fn functions(tree: &Tree) -> HashSet<&str> {
    tree.rust_files()
        .flat_map(|(_, text)| text.lines())
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.match_indices("fn ").map(move |(start, _)| (line, start)))
        .filter(|(line, start)| line[..*start].chars().next_back().is_none_or(|c| c == ' '))
        .filter_map(|(line, start)| {
            let rest = &line[start + "fn ".len()..];
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (end > 0).then(|| &rest[..end])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Tree, check};

    const SOURCE: &str = "#[test]\nfn next_is_total() {}\n// fn only_in_words()\n";

    fn check_rows(rows: &str) -> Vec<String> {
        let text = format!(
            "# A\n\n## Invariants\n\n| # | invariant | proved by |\n|---|---|---|\n{rows}\n## Next\n"
        );
        check(&Tree::of(&[("ARCHITECTURE.md", &text), ("crates/core/src/broker/phase.rs", SOURCE)]))
    }

    #[test]
    fn a_row_that_names_a_test_is_fine() {
        let rows = "| 1 | a `thing` | `next_is_total` |\n| 2 | b | `core::phase::next_is_total` |\n\
                    | 3 | c | later: `not_yet_written` |";
        assert_eq!(check_rows(rows), Vec::<String>::new());
    }

    #[test]
    fn a_row_that_names_a_test_which_is_not_there_is_found() {
        for name in ["gone", "only_in_words", "core::phase::gone", "next_is"] {
            let wrong = check_rows(&format!("| 1 | a | `next_is_total`, `{name}` |"));
            let function = name.rsplit("::").next().unwrap();
            let expected = format!("ARCHITECTURE.md:7: there is no `fn {function}` under crates/");
            assert_eq!(wrong, [expected]);
        }
    }

    #[test]
    fn a_row_without_a_proof_is_found() {
        let wrong = check_rows("| 1 | a | trust me |\n| 2 | later in time | |");
        assert_eq!(wrong.len(), 2, "{wrong:?}");
    }

    #[test]
    fn a_document_without_the_table_is_found_and_no_document_is_fine() {
        assert_eq!(check(&Tree::of(&[("ARCHITECTURE.md", "# A\n\n## Invariants\n")])).len(), 1);
        assert_eq!(check(&Tree::of(&[])), Vec::<String>::new());
    }
}
