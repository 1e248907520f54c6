//! Declaring a resource.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_core::access::idempotency::Request;
use slipway_core::broker::declare::{self, Declaration};
use slipway_core::broker::transition::transitions;
use slipway_core::deletion::protection;
use slipway_core::error::Refusal;
use slipway_core::ids::{ProvisionedResourceId, ResourceId};
use slipway_core::text::{Handle, check_reference};

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::idempotency::{bind, record};
use crate::broker::port::DeclareKey;
use crate::{Context, Error};

/// The project of a declaration that names none.
pub const DEFAULT_PROJECT: &str = "default";

/// A declaration as received, unchecked.
#[derive(Debug, Clone, Default)]
pub struct Declare {
    pub project: Option<String>,
    pub handle: String,
    pub blueprint: String,
    pub version: Option<String>,
    pub credential: Option<String>,
    pub parameters: BTreeMap<String, Value>,
    pub labels: BTreeMap<String, String>,
    /// Whether it is protected from deletion.
    pub protected: bool,
    /// Binds the caller's idempotency key to the resource.
    pub request: Option<Request>,
}

/// Accepts the declaration, or refuses it and writes nothing.
pub async fn declare(
    context: &Context,
    caller: &Caller,
    input: Declare,
) -> Result<ResourceId, Error> {
    let actor = authorise(caller, Operation::ResourceDeclare)?;
    // Before the database is asked for them; the rule checks all the rest.
    let references = [
        ("project", input.project.as_deref()),
        ("blueprint", Some(input.blueprint.as_str())),
        ("version", input.version.as_deref()),
        ("credential", input.credential.as_deref()),
    ];
    let wrong = references.into_iter().filter_map(|(field, reference)| {
        reference.and_then(|text| check_reference(field, text).err())
    });
    Refusal::all(wrong.map(Refusal::from))?;
    let declaration = Declaration {
        resource_id: ResourceId::new(context.entropy.uuid()),
        provisioned_resource_id: ProvisionedResourceId::new(context.entropy.uuid()),
        handle: input.handle,
        labels: input.labels,
        project: input.project.unwrap_or_else(|| usual_project(caller)),
        blueprint: input.blueprint,
        version: input.version,
        credential: input.credential,
        parameters: input.parameters,
    };
    let record = record(context, input.request, declaration.resource_id.as_uuid());
    let key = DeclareKey {
        project: declaration.project.clone(),
        // None is held by a text that is no handle, and some cannot be looked up.
        handle: Handle::parse(&declaration.handle)
            .map(|handle| handle.to_string())
            .unwrap_or_default(),
        blueprint: declaration.blueprint.clone(),
        version: declaration.version.clone(),
        credential: declaration.credential.clone(),
    };
    let mut transitioned = Vec::new();
    context
        .stores
        .broker
        .decide_declaration(&key, &mut |snapshot| {
            let seen = caller.project.map(|own| snapshot.within(own));
            let snapshot = seen.as_ref().unwrap_or(snapshot);
            let commit = declare::declare(snapshot, &declaration, &actor)?;
            transitioned = transitions(&commit, None);
            let project = snapshot.project.filter(|_| input.protected);
            let commit = match project {
                Some(project) => protection::declared(
                    commit,
                    declaration.resource_id.into(),
                    Some(project),
                    &declaration.handle,
                    &actor,
                    snapshot.now,
                ),
                None => commit,
            };
            Ok(bind(commit, record.as_ref()))
        })
        .await?;
    // The only log line that connects a request with the ticks of the loops.
    let (resource_id, attempt_id) = (declaration.resource_id, declaration.provisioned_resource_id);
    tracing::info!(%resource_id, %attempt_id, "declared");
    context.meter.transitioned(&transitioned);
    context.wakes.wake();
    Ok(declaration.resource_id)
}

/// The project of a declaration that names none: the caller's own, if it reaches only one.
fn usual_project(caller: &Caller) -> String {
    caller.project.map_or_else(|| DEFAULT_PROJECT.to_owned(), |own| own.to_string())
}
