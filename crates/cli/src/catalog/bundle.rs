//! A blueprint version in a folder of the catalog, named after the slug:
//! `metadata.json`, `xrd.yaml` and `composition.yaml`.

use std::path::Path;

use serde::Deserialize;
use slipway_wire::catalog::{ParameterSchema, PublishVersion};

use crate::error::Error;

pub(super) const METADATA: &str = "metadata.json";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Metadata {
    slug: String,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    version: String,
    provider_kinds: Vec<String>,
    injection_strategy: String,
    #[serde(default)]
    parameter_schema: ParameterSchema,
    #[serde(default)]
    mesh_role: Option<String>,
}

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
    ) -> serde_json::Result<Self> {
        let metadata: Metadata = serde_json::from_str(metadata)?;
        let body = PublishVersion {
            version: metadata.version,
            xrd,
            composition,
            parameter_schema: metadata.parameter_schema,
            injection_strategy: metadata.injection_strategy,
            mesh_role: metadata.mesh_role,
            provider_kinds: metadata.provider_kinds,
            install_definitions: false,
        };
        let display_name = metadata.display_name.unwrap_or_else(|| metadata.slug.clone());
        let description = metadata.description.unwrap_or_default();
        Ok(Self { slug: metadata.slug, display_name, description, body })
    }
}

pub(super) fn read(folder: &Path) -> Result<Bundle, Error> {
    let file = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path)
            .map_err(|error| Error::Usage(format!("cannot read {}: {error}", path.display())))
    };
    let metadata = file(METADATA)?;
    let (xrd, composition) = (file("xrd.yaml")?, file("composition.yaml")?);
    let bundle = Bundle::from_texts(&metadata, xrd, composition).map_err(|error| {
        let path = folder.join(METADATA);
        Error::Usage(format!("{} is not what is expected: {error}", path.display()))
    })?;
    let whole = folder.canonicalize();
    let name = whole.as_deref().ok().and_then(Path::file_name);
    if name.is_none_or(|name| *name != *bundle.slug) {
        return Err(Error::Usage(format!(
            "the folder {} holds blueprint `{}`; it has to be called as its slug",
            folder.display(),
            bundle.slug
        )));
    }
    Ok(bundle)
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
        assert_eq!(body.parameter_schema.parameters[0].name, "size");
    }

    #[test]
    fn what_is_wrong_with_a_folder_is_said_before_anything_is_sent() {
        let refusal = |slug: &str, metadata: &str, without: &str| {
            let (_root, folder) = folder(slug, metadata);
            if !without.is_empty() {
                std::fs::remove_file(folder.join(without)).unwrap();
            }
            read(&folder).unwrap_err().to_string()
        };
        assert!(refusal("other", GOOD, "").contains("called as its slug"));
        assert!(refusal("small", GOOD, "xrd.yaml").contains("xrd.yaml"));
        assert!(refusal("small", GOOD, "metadata.json").contains("metadata.json"));
        assert!(refusal("small", "{", "").contains("metadata.json is not what is expected"));
        assert!(refusal("small", &GOOD.replace("version", "verzion"), "").contains("verzion"));
    }
}
