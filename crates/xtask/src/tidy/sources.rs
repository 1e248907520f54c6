//! Checks source files: their module doc, their size, what `lib.rs` and
//! `mod.rs` contain, and leftovers that no text may have.

use super::tree::Tree;

/// A longer file has to be split.
const MOST_LINES: usize = 800;

/// Source files that do not open with `//!`.
pub(super) fn check_openings(tree: &Tree) -> Vec<String> {
    tree.source_files()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| {
            format!("{path}: open it with `//!`: what it is, what it owns, what it must not do")
        })
        .collect()
}

/// Rust files that are too long, tests included.
pub(super) fn check_sizes(tree: &Tree) -> Vec<String> {
    tree.rust_files()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(path, lines)| format!("{path}: {lines} lines, at most {MOST_LINES}: split it"))
        .collect()
}

/// Ascending production lines per file: without test modules and without files
/// that only have tests.
pub(super) fn production_lines(tree: &Tree) -> Vec<usize> {
    let mut lines: Vec<usize> = tree
        .source_files()
        .filter(|(path, _)| !path.ends_with("/tests.rs") && !path.contains("/tests/"))
        .map(|(_, text)| {
            let tests = text.lines().position(|line| line == "#[cfg(test)]");
            tests.unwrap_or_else(|| text.lines().count())
        })
        .collect();
    lines.sort_unstable();
    lines
}

/// `lib.rs` and `mod.rs` with functions or impl blocks.
pub(super) fn check_roots(tree: &Tree) -> Vec<String> {
    let is_root = |path: &str| path.ends_with("/lib.rs") || path.ends_with("/mod.rs");
    tree.source_files()
        .filter(|(path, _)| is_root(path))
        .flat_map(|(path, text)| {
            text.lines().enumerate().filter(|(_, line)| is_logic(line)).map(move |(index, line)| {
                format!(
                    "{path}:{}: `{}` belongs in a file of its own; \
                     this one holds docs, mod lines and re-exports",
                    index + 1,
                    line.trim_end_matches(['{', ' '])
                )
            })
        })
        .collect()
}

/// Whether a line starts a function or an impl block at the outermost level,
/// which rustfmt puts in the first column.
fn is_logic(line: &str) -> bool {
    let mut words = line.split([' ', '<', '(']);
    if line.starts_with(char::is_whitespace) || line.starts_with("//") {
        return false;
    }
    // Only visibility and qualifiers precede `fn` and `impl`.
    let qualifiers =
        ["pub", "crate)", "super)", "async", "const", "unsafe", "extern", "\"C\"", "default"];
    let first = words.find(|word| !qualifiers.contains(word));
    matches!(first, Some("fn" | "impl"))
}

/// Marks of unfinished work, and paths of a particular machine.
pub(super) fn check_leftovers(tree: &Tree) -> Vec<String> {
    // Split, so that this file does not report itself.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME")];
    let macros = [concat!("to", "do!"), concat!("unimple", "mented!")];
    let places = [concat!("/wo", "rk/"), concat!("/fa", "rm/"), concat!("/ho", "me/")];
    let mut wrong = Vec::new();
    for (path, text) in tree.files() {
        for (index, line) in text.lines().enumerate() {
            let at = || format!("{path}:{}", index + 1);
            for mark in marks.iter().chain(&macros).filter(|mark| has_word(line, mark)) {
                wrong.push(format!("{}: `{mark}`: finish it, or write an issue", at()));
            }
            for place in places.iter().filter(|place| has_absolute(line, place)) {
                wrong.push(format!("{}: `{place}` is a path of somebody's machine", at()));
            }
        }
    }
    wrong
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + word.len()..]);
        !is_part(before.chars().next_back()) && !is_part(after.chars().next())
    })
}

/// Whether `place` is at the beginning of a path, not inside one.
fn has_absolute(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-./}*~$".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::{
        MOST_LINES, Tree, check_leftovers, check_openings, check_roots, check_sizes,
        production_lines,
    };

    #[test]
    fn a_source_file_without_an_opening_is_found() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "//! Good.\n"),
            ("crates/a/src/bad.rs", "use std::fmt;\n//! Too late.\n"),
            ("crates/a/tests/free.rs", "use std::fmt;\n"),
        ]);
        let wrong = check_openings(&tree);
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].starts_with("crates/a/src/bad.rs"), "{wrong:?}");
    }

    #[test]
    fn a_file_that_is_too_long_is_found() {
        let tree = Tree::of(&[
            ("crates/a/src/long.rs", &"\n".repeat(MOST_LINES)),
            ("crates/a/tests/longer.rs", &"\n".repeat(MOST_LINES + 1)),
        ]);
        assert_eq!(
            check_sizes(&tree),
            [format!("crates/a/tests/longer.rs: 801 lines, at most {MOST_LINES}: split it")]
        );
    }

    #[test]
    fn tests_are_not_production_lines() {
        let tree = Tree::of(&[
            ("crates/a/src/three.rs", "1\n2\n3\n#[cfg(test)]\nmod tests {\n}\n"),
            ("crates/a/src/two.rs", "1\n2\n"),
            ("crates/a/src/two/tests.rs", "1\n"),
            ("crates/a/tests/all.rs", "1\n"),
        ]);
        assert_eq!(production_lines(&tree), [2, 3]);
    }

    #[test]
    fn logic_in_the_root_of_a_module_is_found() {
        for logic in [
            "fn f() {",
            "pub fn f() {",
            "pub(crate) async fn f() {",
            "const fn f() {",
            "impl A {",
            "impl<T> A for T {",
        ] {
            for root in ["crates/a/src/lib.rs", "crates/a/src/b/mod.rs"] {
                let wrong =
                    check_roots(&Tree::of(&[(root, &format!("//! A root.\n{logic}\n}}\n"))]));
                assert_eq!(wrong.len(), 1, "{logic}");
                assert!(wrong[0].starts_with(&format!("{root}:2: ")), "{wrong:?}");
            }
        }
    }

    #[test]
    fn the_root_of_a_module_may_declare() {
        let text = "//! fn in words.\npub mod implementations;\npub use a::fn_like;\n\
                    pub const A: usize = 1;\n#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n";
        let tree = Tree::of(&[("crates/a/src/lib.rs", text), ("crates/a/src/b.rs", "fn f() {}\n")]);
        assert_eq!(check_roots(&tree), Vec::<String>::new());
    }

    #[test]
    fn unfinished_work_is_found() {
        let text = [
            concat!("// TO", "DO: later"),
            concat!("    to", "do!()"),
            concat!("# FIX", "ME"),
            concat!("MASTO", "DON is a word"),
        ]
        .join("\n");
        let wrong = check_leftovers(&Tree::of(&[("docs/a.md", &text)]));
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(wrong[2].starts_with("docs/a.md:3: "), "{wrong:?}");
    }

    #[test]
    fn a_path_of_a_machine_is_found_but_not_inside_another_path() {
        let text = [
            concat!("cd /wo", "rk/main"),
            concat!("(/ho", "me/somebody/x)"),
            concat!("api/wo", "rk/items"),
            concat!("$ROOT/ho", "me/x"),
        ]
        .join("\n");
        let wrong = check_leftovers(&Tree::of(&[("a.sh", &text)]));
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[1].starts_with("a.sh:2: "), "{wrong:?}");
    }
}
