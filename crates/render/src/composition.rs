//! A Composition: how a composite becomes cloud resources. Crossplane gets it
//! unchanged; only the fields that tie it to its XRD are read.

use crate::documents::Document;
pub use crate::documents::Fault;

const API_VERSION: &str = "apiextensions.crossplane.io/v1";
const KIND: &str = "Composition";

/// What a Composition says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composition {
    pub name: String,
    /// `group/version` of the composites that it is for.
    pub type_api_version: String,
    pub type_kind: String,
}

pub fn parse(text: &str) -> Result<Composition, Fault> {
    let document = Document::read("composition", text)?;
    document.is_a(API_VERSION, KIND)?;
    let mode = document.text("spec.mode")?;
    if mode != "Pipeline" {
        let remedy = "write Pipeline; Crossplane 2 knows no other";
        return Err(document.fault("spec.mode", "is not Pipeline", remedy));
    }
    if document.at("spec.pipeline").as_array().is_none_or(Vec::is_empty) {
        return Err(document.fault("spec.pipeline", "has no step", "name at least one function"));
    }
    Ok(Composition {
        name: document.text("metadata.name")?.to_owned(),
        type_api_version: document.text("spec.compositeTypeRef.apiVersion")?.to_owned(),
        type_kind: document.text("spec.compositeTypeRef.kind")?.to_owned(),
    })
}
