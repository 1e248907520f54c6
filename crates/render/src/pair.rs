//! Checks that the XRD, the Composition and the metadata of a blueprint version
//! belong together. Publication refuses what would fail on a cluster, or what
//! the cluster would drop silently.

use serde_json::json;
use slipway_core::catalog::blueprint::VersionContent;
use slipway_core::catalog::blueprint_version::{
    CompositeDefinition, Documents, InjectionStrategy, MeshRole,
};
use slipway_core::catalog::parameters::{ParameterSchema, View};
use slipway_core::error::{ErrorKind, Refusal};

pub use crate::documents::Fault;
use crate::injection::{SITE_HELM_VALUES, SITE_PROVIDER_SECRET};
use crate::xrd::Xrd;
use crate::{composition, xrd, xrd_parameters};

/// Checks the three against each other. Reports all faults at once, so that an
/// author does not have to publish once per fault.
pub fn check(content: &VersionContent) -> Result<Documents, Vec<Fault>> {
    let (xrd, composition) =
        match (xrd::parse(&content.xrd), composition::parse(&content.composition)) {
            (Ok(xrd), Ok(composition)) => (xrd, composition),
            (xrd, composition) => {
                return Err([xrd.err(), composition.err()].into_iter().flatten().collect());
            }
        };
    let mut faults = Vec::new();
    let kind = &xrd.composite_type;
    if content.version != kind.version {
        let problem = format!("is not the served version of the XRD, {}", kind.version);
        faults.push(Fault::new("version", problem, "give both the same name"));
    }
    for (name, given, wanted) in [
        ("apiVersion", &composition.type_api_version, kind.api_version()),
        ("kind", &composition.type_kind, kind.kind.clone()),
    ] {
        if *given != wanted {
            faults.push(Fault::new(
                format!("composition.spec.compositeTypeRef.{name}"),
                "is not what the XRD defines",
                format!("write {wanted}"),
            ));
        }
    }
    faults.extend(parameters(&content.parameter_schema, &xrd));
    if content.mesh_role == MeshRole::Node {
        faults.extend(site(content.injection_strategy, &xrd));
    }
    if let Some(tags) = xrd.cloud_tags()
        && !tags.takes_a_map_of_texts()
    {
        faults.push(Fault::new(
            "xrd.spec.cloudTags",
            "does not take a map of texts",
            "declare it as an object with additionalProperties of type string",
        ));
    }
    if content.install_definitions {
        faults.extend(choice(&xrd));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let cloud_tags = xrd.cloud_tags().is_some();
    let composite = CompositeDefinition { composite_type: xrd.composite_type, cloud_tags };
    Ok(Documents { composite, composition: composition.name })
}

/// Checks that Crossplane will use the Composition that a composite names. `defaultCompositionRef`
/// does no harm: it is for composites that name none.
fn choice(xrd: &Xrd) -> Vec<Fault> {
    let mut faults = Vec::new();
    if xrd.enforces_a_composition {
        faults.push(Fault::new(
            "xrd.spec.enforcedCompositionRef",
            "makes all composites use one Composition, and each version that Slipway installs has its own",
            "leave it out, or publish without install_definitions",
        ));
    }
    if xrd.updates_by_hand {
        faults.push(Fault::new(
            "xrd.spec.defaultCompositionUpdatePolicy",
            "keeps a composite on the Composition that it had first, so no other version reaches it",
            "write Automatic or leave it out, or publish without install_definitions",
        ));
    }
    let named = |field: xrd::Schema| field.field("compositionRef")?.field("name");
    if let Some(field) = xrd.crossplane()
        && !named(field).is_some_and(|name| name.takes("string"))
    {
        faults.push(Fault::new(
            "xrd.spec.crossplane",
            "does not take compositionRef.name, where a composite names its Composition",
            "leave the field out of the schema: Crossplane adds it",
        ));
    }
    faults
}

/// Checks that every value that can be supplied reaches the Composition.
fn parameters(declared: &ParameterSchema, xrd: &Xrd) -> Vec<Fault> {
    if declared.is_empty() {
        return Vec::new();
    }
    let Some(field) = xrd.parameters().filter(xrd::Schema::takes_a_map) else {
        return vec![no_parameters("parameters are declared")];
    };
    let mut faults = Vec::new();
    fields("parameter_schema", &declared.view(), &field, &mut faults);
    faults
}

/// Checks the fields of an object of the schema against those of the XRD.
fn fields(at: &str, declared: &View<'_>, xrd: &xrd::Schema, faults: &mut Vec<Fault>) {
    let remedy = |kind: &str| {
        format!(
            "declare it below spec.parameters of the XRD{kind}, or set x-kubernetes-preserve-unknown-fields there"
        )
    };
    for (name, schema) in declared.properties() {
        let at = format!("{at}.{name}");
        let kind = schema.kind();
        let as_kind = if kind == "any" { String::new() } else { format!(" as {kind}") };
        match xrd.field(name) {
            None => {
                let problem = "is not in the XRD and would be pruned";
                faults.push(Fault::new(at, problem, remedy(&as_kind)));
            }
            Some(field) if !schema.types().iter().all(|kind| field.takes(kind)) => {
                faults.push(Fault::new(at, "is of another type in the XRD", remedy(&as_kind)));
            }
            Some(field) => value(&at, &schema, &field, faults),
        }
    }
    if (declared.is_open() || declared.others().is_some()) && xrd.field("any").is_none() {
        let problem = "takes fields that the XRD does not have and would prune";
        let remedy =
            "set `additionalProperties: false`, or x-kubernetes-preserve-unknown-fields in the XRD";
        faults.push(Fault::new(at, problem, remedy));
    }
}

/// Checks what is inside a value.
fn value(at: &str, declared: &View<'_>, xrd: &xrd::Schema, faults: &mut Vec<Fault>) {
    if declared.types().contains(&"object") {
        fields(at, declared, xrd, faults);
    }
    if let (Some(items), Some(field)) = (declared.items(), xrd.items()) {
        let at = format!("{at}[]");
        match items.types().iter().all(|kind| field.takes(kind)) {
            true => value(&at, &items, &field, faults),
            false => {
                let remedy = format!("declare the items as {} in the XRD", items.kind());
                faults.push(Fault::new(at, "is of another type in the XRD", remedy));
            }
        }
    }
}

fn no_parameters(why: &str) -> Fault {
    Fault::new(
        "xrd.spec.parameters",
        format!("is not in the schema, and {why}; what is rendered there would be pruned"),
        "declare it as an object with x-kubernetes-preserve-unknown-fields",
    )
}

/// The parameters of an author who declares none: those of the XRD. None if the XRD cannot be
/// read, of which [`check`] says why.
pub fn parameters_of_xrd(text: &str) -> Result<ParameterSchema, Vec<Fault>> {
    let parameters = xrd::parse(text).ok().and_then(|xrd| xrd.parameters());
    let schema = parameters.and_then(|schema| xrd_parameters::translated(&schema));
    schema.map_or_else(|| Ok(ParameterSchema::default()), ParameterSchema::read).map_err(|faults| {
        let fault = |refusal: Refusal| {
            let field = refusal.field.unwrap_or_default();
            let inner = field.strip_prefix("parameter_schema").unwrap_or_default().to_owned();
            let problem = refusal.message;
            let problem = problem.strip_prefix(&format!("`{field}` ")).unwrap_or(&problem);
            let remedy = "change the XRD, or declare the parameters in the metadata ({\"parameters\": []} for none)";
            Fault::new(format!("xrd.spec.parameters{inner}"), problem, remedy)
        };
        faults.into_iter().map(fault).collect()
    })
}

/// Checks that the XRD has the site where the strategy writes the token.
fn site(strategy: InjectionStrategy, xrd: &Xrd) -> Option<Fault> {
    let (site, keys): (&str, &[&str]) = match strategy {
        InjectionStrategy::CloudInitUserData => {
            let found = xrd.user_data().is_some_and(|field| field.takes("string"));
            return (!found).then(|| {
                Fault::new(
                    "xrd.spec.userData",
                    "is not in the schema as a text, and strategy cloud-init-user-data writes there",
                    "declare it with type string, or choose another injection strategy",
                )
            });
        }
        InjectionStrategy::HelmValues => {
            (SITE_HELM_VALUES, &["bootstrapToken", "apiUrl", "plexdImage"])
        }
        InjectionStrategy::ProviderSecret => (SITE_PROVIDER_SECRET, &["bootstrapToken"]),
    };
    let Some(field) = xrd.parameters().filter(xrd::Schema::takes_a_map) else {
        return Some(no_parameters(&format!("strategy {strategy} writes below it")));
    };
    let kept = |schema: &xrd::Schema| {
        let text = |key: &&str| schema.field(key).is_some_and(|value| value.takes("string"));
        schema.takes_a_map() && keys.iter().all(text)
    };
    let found = field.field(site).is_some_and(|schema| kept(&schema));
    (!found).then(|| {
        Fault::new(
            format!("xrd.spec.parameters.{site}"),
            format!(
                "is not in the schema with {}, and strategy {strategy} writes there",
                keys.join(", ")
            ),
            "declare it, or set x-kubernetes-preserve-unknown-fields on spec.parameters",
        )
    })
}

/// The faults as one refusal, and in its details with their remedies.
pub fn refusal(faults: &[Fault]) -> Refusal {
    let each =
        faults.iter().map(|fault| Refusal::new(code(fault), fault.to_string()).at(&fault.field));
    let Err(refusal) = Refusal::all(each) else {
        return Refusal::new(ErrorKind::BlueprintPairInvalid, "the documents do not fit");
    };
    let of = |fault: &Fault| {
        json!({
            "field": fault.field,
            "problem": fault.problem,
            "remedy": fault.remedy,
        })
    };
    let problems: Vec<_> = faults.iter().map(of).collect();
    refusal.with(json!({ "problems": problems }))
}

fn code(fault: &Fault) -> ErrorKind {
    match fault.field.split('.').next() {
        Some("xrd") => ErrorKind::XrdInvalid,
        Some("composition") => ErrorKind::CompositionInvalid,
        Some("parameter_schema") => ErrorKind::ParameterSchemaInvalid,
        _ => ErrorKind::BlueprintPairInvalid,
    }
}

#[cfg(test)]
mod tests;
