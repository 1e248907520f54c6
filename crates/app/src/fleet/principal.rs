//! Whom a caller speaks for in Fleet: a person with a role, an agent for itself, or a generator
//! for what it owns. What somebody else owns is as unknown as what does not exist.

use std::time::Duration;

use slipway_core::access::api_key::{ApiKey, Principal};
use slipway_core::access::api_key_rules::{self, KeySnapshot, NewKey};
use slipway_core::access::audit::Actor;
use slipway_core::access::role::Role;
use slipway_core::ids::{ApiKeyId, GeneratorId, ProjectId};
use slipway_core::precondition::Expected;
use slipway_core::secret::Secret;

use crate::access::authorise::Caller;
use crate::access::keys::draw;
use crate::access::port::KeyTarget;
use crate::broker::declare::DEFAULT_PROJECT;
use crate::{Context, Error};

/// The project that a request means.
pub(crate) fn project(caller: &Caller, named: Option<String>) -> String {
    let own = || caller.project.map(|own| own.to_string());
    named.or_else(own).unwrap_or_else(|| DEFAULT_PROJECT.to_owned())
}

/// Whether the caller speaks for this generator, or for a person.
pub(crate) fn owns(caller: &Caller, generator: Option<GeneratorId>) -> bool {
    match caller.principal {
        Principal::Holder => true,
        Principal::Generator(own) => generator == Some(own),
        Principal::Agent(_) => false,
    }
}

/// The text of the key of an agent or a generator, made on the first call and replaced by each
/// later one, which ends the one before at once.
pub(crate) async fn key(
    context: &Context,
    principal: Principal,
    project: ProjectId,
    actor: &Actor,
) -> Result<Secret, Error> {
    let (name, owner) = match principal {
        Principal::Agent(id) => (format!("agent-{id}"), "agent"),
        Principal::Generator(id) => (format!("generator-{id}"), "generator"),
        Principal::Holder => ("holder".to_owned(), "holder"),
    };
    let (text, secret) = draw(context)?;
    let new = NewKey {
        id: ApiKeyId::new(context.entropy.uuid()),
        name: name.clone(),
        owner: owner.to_owned(),
        reach: None,
        role: Role::Viewer,
        principal,
        project: Some(project.to_string()),
        lifetime: None,
        secret: secret.clone(),
    };
    let mut rule = |snapshot: &KeySnapshot| match &snapshot.key {
        None => api_key_rules::create(snapshot, &new, actor),
        Some(_) => api_key_rules::rotate(snapshot, &secret, Duration::ZERO, Expected::Any, actor),
    };
    let target = KeyTarget::New { name, project: Some(project.to_string()) };
    context.stores.kind::<ApiKey>().decide(&target, &mut rule).await?;
    Ok(text)
}
