//! All checks together, and the report of their findings.

use std::path::Path;

use anyhow::bail;

use super::tree::Tree;
use super::{documents, edges, invariants, sources, tables, words};
use crate::command_line::Verdict;

/// What the checks found.
#[derive(Debug)]
pub struct Findings {
    /// Each names a place and the remedy.
    pub wrong: Vec<String>,
    /// Median production lines per file.
    pub median_lines: usize,
    /// Production lines that nine of ten files do not exceed.
    pub ninetieth_percentile_lines: usize,
}

/// Runs every check.
pub fn check(tree: &Tree) -> Findings {
    let checks = [
        edges::check,
        edges::check_lints,
        sources::check_openings,
        sources::check_sizes,
        sources::check_roots,
        sources::check_leftovers,
        documents::check,
        invariants::check,
        words::check,
        tables::check,
    ];
    let lines = sources::production_lines(tree);
    Findings {
        wrong: checks.iter().flat_map(|check| check(tree)).collect(),
        median_lines: percentile(&lines, 50),
        ninetieth_percentile_lines: percentile(&lines, 90),
    }
}

/// `cargo xtask tidy`.
pub fn run(root: &Path) -> anyhow::Result<Verdict> {
    check_and_report(root).map(|()| Verdict::Fine)
}

/// Checks the tree at `root`, prints the findings, and fails if there are any.
pub fn check_and_report(root: &Path) -> anyhow::Result<()> {
    let findings = check(&Tree::read(root)?);
    println!(
        "production lines per file: median {}, nine of ten within {}",
        findings.median_lines, findings.ninetieth_percentile_lines
    );
    for wrong in &findings.wrong {
        println!("{wrong}");
    }
    if !findings.wrong.is_empty() {
        bail!("the tree is not tidy; findings: {}", findings.wrong.len());
    }
    Ok(())
}

/// The smallest value that at least `percent` of the ascending `values` do not
/// exceed; 0 if there are none.
fn percentile(values: &[usize], percent: usize) -> usize {
    let rank = (values.len() * percent).div_ceil(100);
    rank.checked_sub(1).and_then(|index| values.get(index)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Tree, check, percentile};

    #[test]
    fn percentiles_are_values_of_the_list() {
        let values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 100];
        assert_eq!(percentile(&values, 50), 5);
        assert_eq!(percentile(&values, 90), 9);
        assert_eq!(percentile(&values, 100), 100);
        assert_eq!(percentile(&[7], 50), 7);
        assert_eq!(percentile(&[], 50), 0);
    }

    #[test]
    fn every_check_takes_part() {
        let tree = Tree::of(&[
            // An edge, the lints.
            ("crates/core/Cargo.toml", "[dependencies]\nslipway-app = {}"),
            // The opening, logic in a root, a retired word.
            ("crates/core/src/lib.rs", "fn lane() {}\n"),
            ("crates/core/src/long.rs", &"//!\n".repeat(801)),
            // A leftover, a path, and no table of invariants.
            ("ARCHITECTURE.md", concat!("FIX", "ME `crates/gone`")),
            // A migration without a room.
            ("crates/store/migrations/sqlite/0001_gone.up.sql", ""),
        ]);
        let wrong = check(&tree).wrong;
        assert_eq!(wrong.len(), 10, "{wrong:#?}");
    }
}
