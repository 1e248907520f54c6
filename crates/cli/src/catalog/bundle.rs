//! A blueprint version in a folder of the catalog, named after the slug:
//! `metadata.json`, `xrd.yaml` and `composition.yaml`.

use std::path::Path;

use slipway_wire::catalog::{Metadata, PublishVersion};
use slipway_wire::parse::{Fault, parse, parse_mended};
use slipway_wire::problem::FieldError;

pub(super) const METADATA: &str = "metadata.json";

/// The contents of a folder.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) slug: String,
    /// The slug if the metadata has no other name.
    pub(super) display_name: String,
    pub(super) description: String,
    /// The body of the publish request.
    pub(crate) body: PublishVersion,
}

impl Bundle {
    /// Parses the contents of the three files.
    pub(crate) fn from_texts(
        metadata: &str,
        xrd: String,
        composition: String,
    ) -> Result<Self, Vec<Fault>> {
        Ok(Self::of(parse(metadata.as_bytes())?, xrd, composition))
    }

    fn of(metadata: Metadata, xrd: String, composition: String) -> Self {
        let body = PublishVersion {
            version: metadata.version,
            xrd,
            composition,
            parameter_schema: metadata.parameter_schema,
            injection_strategy: metadata.injection_strategy,
            mesh_role: metadata.mesh_role,
            provider_kinds: metadata.provider_kinds,
            install_definitions: false,
            surge: metadata.surge,
        };
        let display_name = metadata.display_name.unwrap_or_else(|| metadata.slug.clone());
        let description = metadata.description.unwrap_or_default();
        Self { slug: metadata.slug, display_name, description, body }
    }
}

/// The contents of a folder, or all that is wrong with its shape.
pub(crate) fn read(folder: &Path) -> Result<Bundle, Vec<FieldError>> {
    match read_mended(folder) {
        (Some(bundle), faults) if faults.is_empty() => Ok(bundle),
        (_, faults) => Err(faults),
    }
}

/// The contents of a folder as far as they have the right shape, and where they do not. Other
/// values stand in for those, so that the rest can be checked.
pub(super) fn read_mended(folder: &Path) -> (Option<Bundle>, Vec<FieldError>) {
    let mut faults = Vec::new();
    let mut file = |name: &str| {
        let read = std::fs::read_to_string(folder.join(name));
        let read =
            read.map_err(|error| faults.push(fault(name, format!("cannot be read: {error}"))));
        read.unwrap_or_default()
    };
    let (metadata, xrd, composition) = (file(METADATA), file("xrd.yaml"), file("composition.yaml"));
    if faults.iter().any(|fault| fault.field == METADATA) {
        return (None, faults);
    }
    let (metadata, wrong) = parse_mended(metadata.as_bytes());
    faults.extend(wrong.into_iter().map(in_metadata));
    let Some(metadata) = metadata else { return (None, faults) };
    let bundle = Bundle::of(metadata, xrd, composition);
    let slug = format!("{METADATA}: slug");
    if faults.iter().any(|fault| fault.field == slug) {
        return (Some(bundle), faults);
    }
    let whole = folder.canonicalize();
    let name = whole.as_deref().ok().and_then(Path::file_name);
    if name.is_none_or(|name| *name != *bundle.slug) {
        let problem = format!(
            "is `{}`, and the folder {} has to be called as its slug",
            bundle.slug,
            folder.display()
        );
        faults.push(fault(&slug, problem));
    }
    (Some(bundle), faults)
}

/// The field of the publish request that a fault of a folder is about.
pub(super) fn field_of(fault: &FieldError) -> String {
    let field = fault.field.strip_prefix(METADATA).unwrap_or(&fault.field);
    let field = field.trim_start_matches([':', ' ']);
    let field = field.split(['.', '[']).next().unwrap_or_default();
    let mut snake = String::new();
    for c in field.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

fn fault(field: &str, message: String) -> FieldError {
    FieldError { field: field.to_owned(), code: "invalid_input".to_owned(), message }
}

fn in_metadata(Fault { field, problem, position }: Fault) -> FieldError {
    let place = position.map(|(line, column)| format!(", at line {line}, column {column}"));
    let field = field.map_or(METADATA.to_owned(), |field| format!("{METADATA}: {field}"));
    fault(&field, format!("{problem}{}", place.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(slug: &str, metadata: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(slug);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("metadata.json"), metadata).unwrap();
        std::fs::write(folder.join("xrd.yaml"), "kind: X\n").unwrap();
        std::fs::write(folder.join("composition.yaml"), "kind: C\n").unwrap();
        (root, folder)
    }

    const GOOD: &str = r#"{"slug":"small","displayName":"Small","description":"x","version":"v1",
        "providerKinds":["hetzner"],"injectionStrategy":"helm-values",
        "parameterSchema":{"parameters":[{"name":"size","type":"integer","required":true}]}}"#;

    #[test]
    fn a_folder_is_one_version() {
        let (_root, folder) = folder("small", GOOD);
        let Bundle { slug, display_name, body, .. } = read(&folder).unwrap();
        assert_eq!(display_name, "Small");
        assert_eq!((slug.as_str(), body.version.as_str()), ("small", "v1"));
        assert_eq!((body.xrd.as_str(), body.composition.as_str()), ("kind: X\n", "kind: C\n"));
        assert_eq!(body.parameter_schema.unwrap().0["parameters"][0]["name"], "size");
    }

    #[test]
    fn what_is_wrong_with_a_folder_is_said_before_anything_is_sent() {
        let refusal = |slug: &str, metadata: &str, without: &str| {
            let (_root, folder) = folder(slug, metadata);
            if !without.is_empty() {
                std::fs::remove_file(folder.join(without)).unwrap();
            }
            let faults = read(&folder).unwrap_err();
            let lines: Vec<_> =
                faults.iter().map(|fault| format!("{} {}", fault.field, fault.message)).collect();
            lines.join("\n")
        };
        assert!(refusal("other", GOOD, "").contains("called as its slug"));
        assert!(refusal("small", GOOD, "xrd.yaml").contains("xrd.yaml"));
        assert!(refusal("small", GOOD, "metadata.json").contains("metadata.json"));
        assert!(refusal("small", "{", "").contains("metadata.json EOF while parsing"));
        let wrong = GOOD.replace("version", "verzion").replace("[\"hetzner\"]", "3");
        let told = refusal("small", &wrong, "xrd.yaml");
        let wanted = ["xrd.yaml cannot", ": verzion", ": version", ": providerKinds"];
        for wanted in wanted {
            assert!(told.contains(wanted), "{wanted}: {told}");
        }
    }
}
