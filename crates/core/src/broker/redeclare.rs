//! What a person changes in the declaration of a resource that exists, checked like a
//! declaration. An update applies it in place, a retry or a replacement by another attempt.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::broker::attempt::{Correction, ProvisionedResource};
use crate::broker::declare::{self, Desired};
use crate::broker::snapshot::{DeclareSnapshot, ResourceSnapshot};
use crate::broker::teardown::{self, Order};
use crate::catalog::blueprint_version::BlueprintVersion;
use crate::catalog::parameters::ParameterValues;
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};

/// What becomes different. Anything else stays as declared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Corrections {
    /// Another version of the same blueprint.
    pub version: Option<String>,
    /// New values by their names; `null` takes a value away.
    pub parameters: BTreeMap<String, Value>,
}

impl Corrections {
    pub fn is_empty(&self) -> bool {
        self.version.is_none() && self.parameters.is_empty()
    }
}

/// A resource with what its corrected declaration is checked against.
#[derive(Debug, Clone)]
pub struct RedeclareSnapshot {
    pub resource: ResourceSnapshot,
    /// The name of its project.
    pub project: String,
    pub declared: DeclareSnapshot,
}

/// A corrected declaration that passed every check.
#[derive(Debug)]
pub(crate) struct Redeclared<'a> {
    pub(crate) blueprint: &'a BlueprintVersion,
    pub(crate) correction: Correction,
}

/// Checks the corrections as part of a declaration. A refusal names all faults at once.
pub(crate) fn check<'a>(
    resource: &ResourceSnapshot,
    project: &str,
    declared: &'a DeclareSnapshot,
    corrections: &Corrections,
) -> Result<Redeclared<'a>, Refusal> {
    let parameters = resource.attempt.parameter_values().merged(&corrections.parameters)?;
    let credential = resource.attempt.cloud_credential_id().to_string();
    let desired = Desired {
        project,
        blueprint: &resource.blueprint.slug,
        version: corrections.version.as_deref().or(Some(&resource.blueprint.version)),
        credential: Some(&credential),
        parameters: &parameters,
    };
    let checked = declare::check(declared, desired).map_err(|refusal| {
        // The body names neither blueprint nor credential.
        let of_version = refusal.field.as_deref() == Some("blueprint")
            || refusal.kind == ErrorKind::ProviderConfigConflict;
        if of_version { refusal.at("version") } else { refusal }
    })?;
    let correction = Correction {
        blueprint_version_id: checked.blueprint.id,
        parameter_values: checked.parameter_values,
    };
    Ok(Redeclared { blueprint: checked.blueprint, correction })
}

/// Takes the attempt down, so that another one of the corrected declaration follows it.
pub(crate) fn take_down(
    resource: &ResourceSnapshot,
    leaving: ProvisionedResource,
    redeclared: &Redeclared<'_>,
    order: Order<'_>,
) -> Commit {
    let correction = redeclared.correction.clone();
    let mut commit = teardown::begin(resource, leaving.corrected(Some(correction)), order);
    for entry in &mut commit.audit {
        describe(&mut entry.details, resource, redeclared);
    }
    commit
}

/// Says in an audit entry what is different. Values are in the rows of the attempts; the
/// audit names them, as elsewhere.
pub(crate) fn describe(
    details: &mut Value,
    resource: &ResourceSnapshot,
    redeclared: &Redeclared<'_>,
) {
    let Redeclared { blueprint, correction } = redeclared;
    let names = changed_parameters(resource.attempt.parameter_values(), correction);
    let (from, to) = (&resource.blueprint.version, &blueprint.version);
    details["changed"] = json!({ "parameters": names });
    if from != to {
        details["changed"]["version"] = json!({ "from": from, "to": to });
    }
}

/// The names of the parameters whose values differ.
pub(crate) fn changed_parameters(before: &ParameterValues, after: &Correction) -> Vec<String> {
    let (before, after) = (before.as_map(), after.parameter_values.as_map());
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    changed.cloned().collect()
}

/// What the correction makes different, for events: `version`, `parameters.<name>`.
pub(crate) fn changed(before: &ProvisionedResource, after: &Correction) -> Vec<String> {
    let version = before.blueprint_version_id() != after.blueprint_version_id;
    let parameters = changed_parameters(before.parameter_values(), after);
    let parameters = parameters.iter().map(|name| format!("parameters.{name}"));
    version.then(|| "version".to_owned()).into_iter().chain(parameters).collect()
}
