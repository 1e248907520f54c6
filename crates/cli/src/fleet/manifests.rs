//! The content of a stack from a file, a folder of manifests, or the input.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use slipway_core::fleet::content::CONTENT_MAX;

/// How deep folders are read.
const MOST_DEPTH: usize = 32;

/// The text of a file, of every manifest in a folder in the order of their paths, or of the
/// input.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    if path.as_os_str() == "-" {
        return text(std::io::stdin(), "the input");
    }
    let shown = format!("`{}`", path.display());
    let kind = fs::metadata(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    if !kind.is_dir() {
        return file(path);
    }
    let mut paths = Vec::new();
    walk(path, 0, &mut paths)?;
    if paths.is_empty() {
        return Err(format!("{shown} has no file that ends in .yaml, .yml or .json"));
    }
    let mut whole = String::new();
    for path in &paths {
        let text = file(path)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim_end();
        if text.is_empty() {
            continue;
        }
        if !whole.is_empty() && !text.starts_with("---") {
            whole.push_str("---\n");
        }
        whole.push_str(text);
        whole.push('\n');
        if whole.len() > CONTENT_MAX {
            return Err(too_long(&shown));
        }
    }
    Ok(whole)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let shown = format!("`{}`", folder.display());
    if depth > MOST_DEPTH {
        return Err(format!("{shown} is nested deeper than {MOST_DEPTH} folders"));
    }
    let cannot = |error: std::io::Error| format!("{shown} cannot be read: {error}");
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        paths.push(entry.map_err(cannot)?.path());
    }
    paths.sort_unstable();
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if name.is_none_or(|name| name.starts_with('.')) {
            continue;
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            walk(&path, depth + 1, found)?;
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            found.push(path);
        }
    }
    Ok(())
}

fn file(path: &Path) -> Result<String, String> {
    let shown = format!("`{}`", path.display());
    let file = fs::File::open(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    text(file, &shown)
}

fn text(from: impl std::io::Read, shown: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let most = u64::try_from(CONTENT_MAX).unwrap_or(u64::MAX);
    let read = from.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("{shown} cannot be read: {error}"))?;
    if bytes.len() > CONTENT_MAX {
        return Err(too_long(shown));
    }
    String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8"))
}

fn too_long(shown: &str) -> String {
    format!("{shown} is longer than {CONTENT_MAX} bytes, the most of one object; split the stack")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_folder_is_one_text_in_the_order_of_its_files() {
        let root = folder(&[
            ("b.yaml", "---\nkind: B\n"),
            ("a.yml", "kind: A"),
            ("c/d.json", "{\"kind\": \"D\"}\n\n"),
            ("empty.yaml", "\n"),
            (".hidden.yaml", "kind: H"),
            ("notes.md", "kind: N"),
        ]);
        let text = read(root.path()).unwrap();
        assert_eq!(text, "kind: A\n---\nkind: B\n---\n{\"kind\": \"D\"}\n");
        assert_eq!(read(&root.path().join("a.yml")).unwrap(), "kind: A");
    }

    #[test]
    fn what_is_no_content_is_named() {
        let root = folder(&[("notes.md", "")]);
        assert!(read(root.path()).unwrap_err().contains("has no file"));
        assert!(read(&root.path().join("none")).unwrap_err().contains("cannot be read"));
        let long = "x".repeat(CONTENT_MAX);
        let root = folder(&[("a.yaml", &long), ("b.yaml", "y: z")]);
        assert!(read(root.path()).unwrap_err().contains("split the stack"));
        fs::write(root.path().join("a.yaml"), [0xff, 0xfe]).unwrap();
        assert!(read(root.path()).unwrap_err().contains("UTF-8"));
    }
}
