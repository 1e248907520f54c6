//! The files of the workspace, read once for all checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Folders without files of ours.
const NOT_OURS: [&str; 2] = [".git", "target"];

/// Paths, relative to the root and separated by `/`, and their texts.
#[derive(Debug, Default)]
pub struct Tree {
    texts: BTreeMap<String, String>,
    folders: BTreeSet<String>,
}

impl Tree {
    /// Reads the tree at `root`. A file that is not UTF-8 is included with an
    /// empty text.
    pub fn read(root: &Path) -> anyhow::Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> anyhow::Result<()> {
        let place = root.join(folder);
        let reading = || format!("cannot read {}", place.display());
        for entry in fs::read_dir(&place).with_context(reading)? {
            let entry = entry.with_context(reading)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if NOT_OURS.contains(&name.as_str()) {
                continue;
            }
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let kind = entry.file_type().with_context(reading)?;
            if kind.is_dir() {
                self.read_folder(root, &path)?;
                self.folders.insert(path);
            } else if kind.is_file() {
                let bytes =
                    fs::read(entry.path()).with_context(|| format!("cannot read {path}"))?;
                self.insert(&path, String::from_utf8(bytes).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// A made-up tree.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.insert(path, (*text).to_owned());
        }
        tree
    }

    fn insert(&mut self, path: &str, text: String) {
        for (end, _) in path.match_indices('/') {
            self.folders.insert(path[..end].to_owned());
        }
        self.texts.insert(path.to_owned(), text);
    }

    /// All files, in the order of their paths.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The Rust files of all crates, tests included.
    pub(super) fn rust_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.starts_with("crates/") && path.ends_with(".rs"))
    }

    /// The Rust files of `crates/*/src`.
    pub(super) fn source_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rust_files().filter(|(path, _)| path.split('/').nth(2) == Some("src"))
    }

    /// The manifests of all crates: the crate's folder name, path, text.
    pub(super) fn manifests(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.files().filter_map(|(path, text)| {
            let folder = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!folder.contains('/')).then_some((folder, path, text))
        })
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Whether there is a file or folder at `path`.
    pub(super) fn contains(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        path.is_empty() || self.texts.contains_key(path) || self.folders.contains(path)
    }
}

#[cfg(test)]
mod tests {
    use super::Tree;

    #[test]
    fn files_and_their_folders_are_there() {
        let tree = Tree::of(&[("crates/core/src/lib.rs", "")]);
        for path in ["crates", "crates/core/", "crates/core/src/lib.rs"] {
            assert!(tree.contains(path), "{path}");
        }
        assert!(!tree.contains("crates/core/lib.rs"));
    }

    #[test]
    fn a_real_folder_is_read_without_what_is_not_ours() {
        let root = tempfile::tempdir().unwrap();
        for (folder, file) in [("crates/a", "Cargo.toml"), ("target/debug", "x"), (".git", "y")] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
            std::fs::write(root.path().join(folder).join(file), "text").unwrap();
        }
        std::fs::write(root.path().join("image"), [0xff, 0xfe]).unwrap();

        let tree = Tree::read(root.path()).unwrap();
        let files: Vec<_> = tree.files().collect();
        assert_eq!(files, [("crates/a/Cargo.toml", "text"), ("image", "")]);
        assert_eq!(tree.manifests().next(), Some(("a", "crates/a/Cargo.toml", "text")));
    }
}
