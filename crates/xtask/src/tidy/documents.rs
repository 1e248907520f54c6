//! Checks that paths and links in documents exist. Unchecked documents rot.

use super::tree::Tree;

const AT_THE_ROOT: [&str; 4] = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"];
const OUR_FOLDERS: [&str; 7] =
    ["crates/", "docs/", "deploy/", "samples/", "schemas/", ".ci/", ".cargo/"];
const OUR_ENDINGS: [&str; 4] = [".rs", ".md", ".toml", ".ncl"];

/// Paths between backticks and link targets that do not exist.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for (document, text) in tree.files().filter(|(path, _)| is_document(path)) {
        let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (number, line) in prose(text) {
            for path in code_spans(line).filter(|span| resembles_path(span)) {
                if !exists(tree, folder, path) {
                    wrong.push(format!("{document}:{number}: `{path}` does not exist"));
                }
            }
            for target in link_targets(line) {
                if !link_leads_somewhere(tree, folder, target) {
                    wrong.push(format!("{document}:{number}: the link to {target} is dead"));
                }
            }
        }
    }
    wrong
}

fn is_document(path: &str) -> bool {
    AT_THE_ROOT.contains(&path) || (path.starts_with("docs/") && path.ends_with(".md"))
}

/// Numbered lines outside fenced blocks, which show commands and output.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((index + 1, line))
    })
}

/// The texts between pairs of backticks.
pub(super) fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    let pieces = line.split('`').collect::<Vec<_>>();
    // The last piece is after the last backtick, closed or not.
    let closed = pieces.len().saturating_sub(1);
    pieces.into_iter().take(closed).skip(1).step_by(2)
}

/// Whether a code span means a file of ours, rather than a path on some
/// machine, a URL, or a command.
fn resembles_path(span: &str) -> bool {
    let elsewhere = span.starts_with(['/', '~', '$']) || span.contains("://");
    let is_ours = OUR_FOLDERS.iter().any(|folder| span.starts_with(folder))
        || OUR_ENDINGS.iter().any(|ending| without_line(span).ends_with(ending));
    span.contains('/') && !elsewhere && !span.contains(char::is_whitespace) && is_ours
}

/// `src/a.rs` of `src/a.rs:12`.
fn without_line(span: &str) -> &str {
    match span.rsplit_once(':') {
        Some((path, line)) if line.chars().all(|c| c.is_ascii_digit()) => path,
        _ => span,
    }
}

/// Resolved from the root, as paths are written here, or from the document's
/// folder. Of a pattern (`*`, `<name>`, `{a,b}`, …) the folder before it has to
/// exist.
fn exists(tree: &Tree, folder: &str, span: &str) -> bool {
    let path = without_line(span);
    let path = match path.find(['*', '<', '{', '…']) {
        Some(pattern) => path[..pattern].rsplit_once('/').map_or("", |(folder, _)| folder),
        None => path,
    };
    tree.contains(path) || resolve(folder, path).is_some_and(|path| tree.contains(&path))
}

/// Targets of `[text](target)`.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split_once(')')?.0;
        // A title may follow after a space.
        target.split_whitespace().next()
    })
}

fn link_leads_somewhere(tree: &Tree, folder: &str, target: &str) -> bool {
    let path = target.split('#').next().unwrap_or_default();
    if path.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    resolve(folder, path).is_some_and(|path| tree.contains(&path))
}

/// `path` as seen from `folder`, without `.` and `..`; `None` outside the tree.
fn resolve(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{Tree, check, code_spans};

    fn check_text(document: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[
            (document, text),
            ("crates/core/src/broker/phase.rs", ""),
            ("docs/guide/start.md", ""),
        ]))
    }

    #[test]
    fn a_path_that_is_not_there_is_found() {
        for (path, document) in [
            ("crates/core/src/gone.rs", "README.md"),
            ("docs/gone/", "docs/guide/more.md"),
            ("crates/gone/src/*.rs", "ARCHITECTURE.md"),
            ("src/gone.rs:12", "CONTRIBUTING.md"),
        ] {
            let wrong = check_text(document, &format!("First.\nSee `{path}`.\n"));
            assert_eq!(wrong, [format!("{document}:2: `{path}` does not exist")]);
        }
    }

    #[test]
    fn paths_that_are_there_or_are_not_ours_are_fine() {
        for path in [
            "crates/core/src/broker/phase.rs",
            "crates/core/src/broker/phase.rs:7",
            "crates/core/",
            "crates/*/src",
            "crates/<folder>/src/lib.rs",
            "guide/start.md",
            "/etc/slipway/config.toml",
            "~/.config/slipway.toml",
            "https://example.org/a.md",
            "GET /api/v1/a.md",
            "either/or",
            "main.rs",
        ] {
            let wrong = check_text("docs/index.md", &format!("See `{path}`.\n"));
            assert_eq!(wrong, Vec::<String>::new(), "{path}");
        }
    }

    #[test]
    fn a_dead_link_is_found() {
        let text = "[a](guide/start.md) [b](guide/gone.md#part) [c](../../outside.md) \
                    [d](https://example.org) [e](#here) [f](../README.md \"title\")\n";
        let wrong = check_text("docs/index.md", text);
        assert_eq!(
            wrong,
            [
                "docs/index.md:1: the link to guide/gone.md#part is dead",
                "docs/index.md:1: the link to ../../outside.md is dead",
                "docs/index.md:1: the link to ../README.md is dead",
            ]
        );
    }

    #[test]
    fn fenced_blocks_and_other_files_are_left_alone() {
        assert_eq!(check_text("README.md", "```\n`crates/gone`\n```\n"), Vec::<String>::new());
        assert_eq!(check_text("crates/core/NOTES.md", "`crates/gone`"), Vec::<String>::new());
        assert_eq!(check_text("README.md", "```\n```\n`crates/gone`\n").len(), 1);
    }

    #[test]
    fn code_spans_are_what_stands_between_pairs() {
        assert_eq!(code_spans("`a` b `c` d `e").collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(code_spans("none").count(), 0);
    }
}
