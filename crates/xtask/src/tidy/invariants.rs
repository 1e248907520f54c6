//! Checks that the tables of invariants name tests that exist.
//!
//! A row of such a table names, between backticks, the functions that prove it,
//! or says "later" as long as its part is not built. `ARCHITECTURE.md` names the
//! one test to read first for each invariant, `docs/invariants.md` all of them.

use std::collections::HashSet;

use super::documents::code_spans;
use super::tree::Tree;

/// Each document with its column of tests, and how many a row names at most.
const DOCUMENTS: [(&str, &str, usize); 2] =
    [("ARCHITECTURE.md", "read first", 1), ("docs/invariants.md", "proved by", usize::MAX)];

/// Rows of the tables that prove nothing. A document that does not exist has
/// nothing to check.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let functions = functions(tree);
    let mut wrong = Vec::new();
    for (document, column, most) in DOCUMENTS {
        let Some(text) = tree.text(document) else { continue };
        let rows = proofs(text, column);
        if rows.is_empty() {
            wrong.push(format!("{document}: no table with a column \"{column}\""));
        }
        for (number, proof) in rows {
            let later = proof.split(|c: char| !c.is_alphanumeric()).any(|word| word == "later");
            let named: Vec<&str> = code_spans(proof).filter_map(function_name).collect();
            if named.is_empty() && !later {
                wrong
                    .push(format!("{document}:{number}: names no test and does not say \"later\""));
            }
            if named.len() > most {
                wrong.push(format!("{document}:{number}: names more tests than {most}"));
            }
            for name in named.into_iter().filter(|name| !later && !functions.contains(name)) {
                wrong.push(format!("{document}:{number}: there is no `fn {name}` under crates/"));
            }
        }
    }
    wrong
}

/// The numbered cells of this column, in all tables that have it.
fn proofs<'a>(text: &'a str, heading: &str) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    let (mut column, mut in_table) = (None, false);
    for (index, line) in text.lines().enumerate() {
        if !line.trim_start().starts_with('|') {
            in_table = false;
            continue;
        }
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        if !in_table {
            in_table = true;
            column = cells.iter().position(|cell| cell.eq_ignore_ascii_case(heading));
            continue;
        }
        let is_rule = cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':' | ' ')));
        if let Some(column) = column.filter(|_| !is_rule) {
            found.push((index + 1, cells.get(column).copied().unwrap_or_default()));
        }
    }
    found
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
        let text =
            format!("# A\n\n| # | invariant | proved by |\n|---|---|---|\n{rows}\n## Next\n");
        check(&Tree::of(&[
            ("docs/invariants.md", &text),
            ("crates/core/src/broker/phase.rs", SOURCE),
        ]))
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
            let expected =
                format!("docs/invariants.md:5: there is no `fn {function}` under crates/");
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
        assert_eq!(check(&Tree::of(&[("docs/invariants.md", "# A\n")])).len(), 1);
        assert_eq!(check(&Tree::of(&[])), Vec::<String>::new());
    }

    #[test]
    fn one_test_to_read_first_is_enough() {
        let table = |tests: &str| format!("| # | read first |\n|---|---|\n| 1 | {tests} |\n");
        let checked =
            |text: &str| check(&Tree::of(&[("ARCHITECTURE.md", text), ("crates/a.rs", SOURCE)]));
        assert_eq!(checked(&table("`next_is_total`")), Vec::<String>::new());
        assert_eq!(checked(&table("`next_is_total`, `next_is_total`")).len(), 1);
    }
}
