//! Reads the documents of files and folders.
//!
//! A file that cannot be read blocks only itself: the rest is applied, and nothing is pruned.
//! A folder is read with the folders in it, but for hidden ones, those that have a
//! `metadata.json`, which are blueprints, and those that a stack names in `folder`. A file in
//! Nickel is evaluated first; one that another one of the folder imports is a part of that one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_json::{Value, json};
use slipway_core::files::document::DocumentKind;
use slipway_wire::files::{ObjectReference, SubmittedDocument};
use slipway_wire::problem::FieldError;

use super::nickel;
use crate::catalog::bundle;
use crate::error::Error;
use crate::fleet::manifests;

/// The most bytes of a file; a request takes about as many.
const MOST_BYTES: u64 = 1 << 20;
/// The most bytes of the content of a stack as JSON, so that a request takes it.
const MOST_CONTENT: usize = 900 * 1_024;
/// The most documents of one apply.
const MOST_DOCUMENTS: usize = 100_000;
/// How deep folders are read.
const MOST_DEPTH: usize = 32;
/// The file in a folder that names its source.
const SETTINGS: &str = ".slipway.yaml";

/// A document of a file.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) submitted: SubmittedDocument,
    /// What it is about, as far as it says so.
    pub(super) object: ObjectReference,
    /// Where it begins, for messages.
    text: String,
    line: usize,
}

impl Found {
    /// Where the document is, or the field in it.
    pub(super) fn location(&self, field: &str) -> String {
        let sign = if nickel::is_nickel(Path::new(&self.submitted.origin)) { '=' } else { ':' };
        format!("{}:{}", self.submitted.origin, self.line + line_of(&self.text, field, sign))
    }

    /// The order in which documents are applied.
    pub(super) fn rank(&self) -> usize {
        let kinds = DocumentKind::ALL.iter();
        kinds.take_while(|kind| kind.as_str() != self.object.kind).count()
    }
}

/// The line below the first on which the field is, as far as its name tells. `sign`: what is
/// between a name and its value.
fn line_of(text: &str, field: &str, sign: char) -> usize {
    let mut at = 0;
    for part in field.split(['.', '[']).filter(|part| !part.is_empty()) {
        let is_key = |line: &str| {
            let line = line.trim_start().trim_start_matches("- ").trim_start_matches(['"', '\'']);
            line.strip_prefix(part).is_some_and(|rest| {
                let rest = rest.trim_start_matches(['"', '\'']);
                rest.starts_with(sign) || (sign == '=' && rest.trim_start().starts_with(sign))
            })
        };
        match text.lines().skip(at).position(is_key) {
            Some(below) => at += below,
            None => break,
        }
    }
    at
}

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct Folder {
    pub(super) documents: Vec<Found>,
    /// What cannot be read, with its place.
    pub(super) broken: Vec<FieldError>,
    /// The source that the folder names.
    pub(super) source: Option<String>,
}

impl Folder {
    /// Reads every path; `-` is the input.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut folder = Self::default();
        for path in paths {
            if path.as_os_str() == "-" {
                let mut text = Vec::new();
                let read = std::io::stdin().take(MOST_BYTES + 1).read_to_end(&mut text);
                read.map_err(|error| Error::Usage(format!("the input cannot be read: {error}")))?;
                folder.add(&text, "-", Path::new("."));
                continue;
            }
            let kind = fs::metadata(path).map_err(|error| {
                Error::Usage(format!("`{}` cannot be read: {error}", path.display()))
            })?;
            if kind.is_dir() {
                let settings = path.join(SETTINGS);
                folder.source = folder.source.take().or(source(&settings)?);
                let mut found = Vec::new();
                folder.walk(path, path, 0, &mut BTreeSet::new(), &mut found);
                folder.add_files(&found);
            } else {
                let origin = path.file_name().map(|name| name.to_string_lossy().into_owned());
                folder.add_file(path, &origin.unwrap_or_default());
            }
        }
        if folder.documents.len() > MOST_DOCUMENTS {
            let problem = format!("at most {MOST_DOCUMENTS} documents are applied at once");
            return Err(Error::Usage(problem));
        }
        folder.refuse_duplicates();
        folder.documents.sort_by_key(Found::rank);
        Ok(folder)
    }

    /// Finds the files of a folder, each with its path within the root.
    fn walk(
        &mut self,
        root: &Path,
        folder: &Path,
        depth: usize,
        seen: &mut BTreeSet<PathBuf>,
        found: &mut Vec<(PathBuf, String)>,
    ) {
        let shown = |path: &Path| {
            path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
        };
        // A link may lead back to a folder above it.
        let is_new = fs::canonicalize(folder).is_ok_and(|whole| seen.insert(whole));
        if !is_new || depth > MOST_DEPTH {
            return;
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.fault(shown(folder), format!("cannot be read: {error}")),
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort_unstable();
        if depth > 0 && paths.iter().any(|path| path.ends_with("metadata.json")) {
            return;
        }
        for path in paths {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            if name.is_none_or(|name| name.starts_with('.')) {
                continue;
            }
            let extension = path.extension().and_then(|extension| extension.to_str());
            if path.is_dir() {
                self.walk(root, &path, depth + 1, seen, found);
            } else if matches!(extension, Some("yaml" | "yml" | "json" | "ncl")) {
                found.push((path.clone(), shown(&path)));
            }
        }
    }

    /// Adds the files, but for those in a folder that a stack names, and those that a file in
    /// Nickel imports.
    fn add_files(&mut self, found: &[(PathBuf, String)]) {
        let (mut manifests, mut imported) = (Vec::new(), BTreeSet::new());
        for (path, _) in found {
            let beside = path.parent().unwrap_or(Path::new("."));
            // What cannot be read is named when it is added.
            let text = read_file(path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            if nickel::is_nickel(path) {
                let files = text.iter().flat_map(|text| nickel::imports(text));
                imported.extend(files.filter_map(|file| fs::canonicalize(beside.join(file)).ok()));
                continue;
            }
            let text = text.filter(|text| text.contains("folder:"));
            manifests.extend(text.iter().flat_map(|text| manifest_folders(text, beside)));
        }
        let is_manifest = |path: &Path| {
            !manifests.is_empty()
                && fs::canonicalize(path)
                    .is_ok_and(|whole| manifests.iter().any(|folder| whole.starts_with(folder)))
        };
        let is_imported = |path: &Path| {
            !imported.is_empty()
                && fs::canonicalize(path).is_ok_and(|whole| imported.contains(&whole))
        };
        for (path, origin) in found {
            if !is_manifest(path) && !is_imported(path) {
                self.add_file(path, origin);
            }
        }
    }

    fn add_file(&mut self, path: &Path, origin: &str) {
        let beside = path.parent().unwrap_or(Path::new("."));
        match read_file(path) {
            Ok(text) if nickel::is_nickel(path) => self.add_nickel(path, &text, origin, beside),
            Ok(text) => self.add(&text, origin, beside),
            Err(error) => self.fault(origin, format!("cannot be read: {error}")),
        }
    }

    /// Adds what a file in Nickel evaluates to. Lines are those of the file.
    fn add_nickel(&mut self, path: &Path, text: &[u8], origin: &str, beside: &Path) {
        let json = match nickel::evaluate(path, origin) {
            Ok(json) => json,
            Err(faults) => return self.broken.extend(faults),
        };
        let before = self.documents.len();
        self.add(&json, origin, beside);
        let text = String::from_utf8_lossy(text);
        for found in &mut self.documents[before..] {
            (found.text, found.line) = (text.clone().into_owned(), 1);
        }
    }

    /// Adds the documents of a text. `beside` is where the folders are that it names.
    fn add(&mut self, bytes: &[u8], origin: &str, beside: &Path) {
        if bytes.len() as u64 > MOST_BYTES {
            return self.fault(origin, format!("is longer than {MOST_BYTES} bytes; split it"));
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return self.fault(origin, "is not UTF-8".to_owned());
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.contains('\0') {
            return self.fault(origin, "contains U+0000".to_owned());
        }
        for (line, part) in parts(text) {
            match read(part) {
                Ok(values) => {
                    for value in values {
                        self.add_document(value, origin, line, part, beside);
                    }
                }
                Err((below, problem)) => {
                    self.fault(format!("{origin}:{}", line + below), problem);
                }
            }
        }
    }

    fn add_document(
        &mut self,
        mut document: Value,
        origin: &str,
        line: usize,
        part: &str,
        beside: &Path,
    ) {
        if let Err(problem) = with_folders(&mut document, beside) {
            return self.fault(format!("{origin}:{line}"), problem);
        }
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
        let object = ObjectReference {
            kind: text("/kind").unwrap_or_default().to_owned(),
            project: text("/metadata/project").map(str::to_owned),
            cloud: text("/spec/cloud").map(str::to_owned),
            name: text("/metadata/name").unwrap_or_default().to_owned(),
        };
        let submitted = SubmittedDocument { origin: origin.to_owned(), document, plan: None };
        self.documents.push(Found { submitted, object, text: part.to_owned(), line });
    }

    fn fault(&mut self, place: impl Into<String>, message: String) {
        let code = "invalid_input".to_owned();
        self.broken.push(FieldError { field: place.into(), code, message });
    }

    /// Two documents of one object are both refused: nobody can say which one is meant.
    fn refuse_duplicates(&mut self) {
        let mut places: BTreeMap<ObjectReference, Vec<String>> = BTreeMap::new();
        for found in &self.documents {
            let known = !found.object.kind.is_empty() && !found.object.name.is_empty();
            if known {
                places.entry(found.object.clone()).or_default().push(found.location(""));
            }
        }
        places.retain(|_, places| places.len() > 1);
        self.documents.retain(|found| !places.contains_key(&found.object));
        for (object, places) in places {
            let message = format!("{object} is declared {} times; keep one", places.len());
            self.fault(places.join(" and "), message);
        }
    }
}

/// A file, or as much of it as shows that it is too long.
fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// The source that the settings of a folder name.
fn source(settings: &Path) -> Result<Option<String>, Error> {
    let Ok(text) = fs::read_to_string(settings) else { return Ok(None) };
    let wrong = |problem: String| Error::Usage(format!("`{}`: {problem}", settings.display()));
    let read: Value = serde_yaml_ng::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match read.get("source").and_then(Value::as_str) {
        Some(source) => Ok(Some(source.to_owned())),
        None => Err(wrong("must have `source`, such as `source: shop`".to_owned())),
    }
}

/// The documents of a text, each with the number of its first line. A line that begins with
/// `---` separates them, whatever they contain.
fn parts(text: &str) -> Vec<(usize, &str)> {
    let (mut parts, mut begin, mut first, mut at, mut line) = (Vec::new(), 0, 1, 0, 1);
    for whole in text.split_inclusive('\n') {
        let is_end = whole.starts_with("---") && whole[3..].trim_start().is_empty();
        if is_end {
            parts.push((first, &text[begin..at]));
            (begin, first) = (at + whole.len(), line + 1);
        }
        at += whole.len();
        line += 1;
    }
    parts.push((first, &text[begin..]));
    parts
}

/// The values of one document: none if it is empty, several if it is a list. A fault has the
/// line below the first of the document.
fn read(part: &str) -> Result<Vec<Value>, (usize, String)> {
    let fault = |error: serde_yaml_ng::Error| {
        let line = error.location().map_or(0, |location| location.line().saturating_sub(1));
        (line, error.to_string())
    };
    let mut values = Vec::new();
    for document in serde_yaml_ng::Deserializer::from_str(part) {
        // Through a value of YAML, which refuses a key that is there twice.
        let value = serde_yaml_ng::Value::deserialize(document).map_err(fault)?;
        let value = serde_json::to_value(value).map_err(|error| (0, error.to_string()))?;
        match value {
            Value::Null => {}
            Value::Array(items) => values.extend(items),
            Value::Object(mut list) if list.get("kind") == Some(&json!("List")) => {
                match list.remove("items") {
                    Some(Value::Array(items)) => values.extend(items),
                    _ => return Err((0, "a List must have `items`".to_owned())),
                }
            }
            value => values.push(value),
        }
    }
    Ok(values)
}

/// Replaces the folders that a blueprint or a stack names by what is in them.
fn with_folders(document: &mut Value, beside: &Path) -> Result<(), String> {
    match document.get("kind").and_then(Value::as_str) {
        Some("Stack") => return with_manifests(document, beside),
        Some("Blueprint") => {}
        _ => return Ok(()),
    }
    let versions = document.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        let Some(folder) = version.get("folder").and_then(Value::as_str) else { continue };
        let install = version.get("installDefinitions").cloned();
        let bundle = bundle::read(&beside.join(folder)).map_err(|faults| {
            let faults = faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message));
            format!("folder `{folder}`: {}", faults.collect::<Vec<_>>().join("; "))
        })?;
        let body = bundle.body;
        *version = json!({
            "version": body.version,
            "xrd": body.xrd,
            "composition": body.composition,
            "parameterSchema": body.parameter_schema,
            "injectionStrategy": body.injection_strategy,
            "meshRole": body.mesh_role,
            "providerKinds": body.provider_kinds,
            "installDefinitions": install.unwrap_or(json!(false)),
        });
    }
    Ok(())
}

/// The content of a stack as one text: the manifests of a folder, or those that are listed.
fn with_manifests(document: &mut Value, beside: &Path) -> Result<(), String> {
    let Some(spec) = document.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    if let Some(Value::Array(manifests)) = spec.get("objects") {
        let mut text = String::new();
        for manifest in manifests {
            let manifest = serde_yaml_ng::to_string(manifest).map_err(|error| error.to_string())?;
            text.push_str("---\n");
            text.push_str(&manifest);
        }
        spec.insert("objects".to_owned(), Value::String(text));
    }
    let Some(folder) = spec.get("folder").and_then(Value::as_str).map(str::to_owned) else {
        return Ok(());
    };
    if spec.contains_key("objects") {
        return Err("has `objects` and `folder`; keep one of them".to_owned());
    }
    let text = manifests::read(&beside.join(&folder))
        .map_err(|problem| format!("folder `{folder}`: {problem}"))?;
    if Value::String(text.clone()).to_string().len() > MOST_CONTENT {
        return Err(format!(
            "folder `{folder}` has more than an apply takes; submit it with `slipway stack submit`, and leave `folder` out"
        ));
    }
    spec.remove("folder");
    spec.insert("objects".to_owned(), Value::String(text));
    Ok(())
}

/// The folders whose files are manifests of a stack, and no documents.
fn manifest_folders(text: &str, beside: &Path) -> Vec<PathBuf> {
    let values = parts(text).into_iter().filter_map(|(_, part)| read(part).ok()).flatten();
    let of_stack = values.filter(|value| value.get("kind") == Some(&json!("Stack")));
    let folder = |value: Value| {
        let folder = beside.join(value.pointer("/spec/folder")?.as_str()?);
        fs::canonicalize(folder).ok()
    };
    of_stack.filter_map(folder).collect()
}

#[cfg(test)]
mod tests;
