//! Whom a caller speaks for in Fleet: a person with a role, an agent for itself, or a generator
//! for what it owns. What somebody else owns is as unknown as what does not exist.

use std::time::Duration;

use slipway_core::access::api_key::{ApiKey, Principal};
use slipway_core::access::api_key_rules::{self, KeySnapshot, KnownText, NewKey};
use slipway_core::access::audit::Actor;
use slipway_core::access::role::Role;
use slipway_core::catalog::project::Project;
use slipway_core::commit::Commit;
use slipway_core::error::Refusal;
use slipway_core::ids::{ApiKeyId, GeneratorId, ProjectId};
use slipway_core::precondition::Expected;
use slipway_core::secret::Secret;
use slipway_core::time::Timestamp;

use crate::access::authorise::Caller;
use crate::access::keys::draw;
use crate::access::port::KeyTarget;
use crate::broker::declare::DEFAULT_PROJECT;
use crate::{Context, Error, kind};

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

/// A key that is yet to be made, and its text.
pub(crate) fn draw_key(
    context: &Context,
    principal: Principal,
) -> Result<(Secret, NewKey), Refusal> {
    let (name, owner) = match principal {
        Principal::Agent(id) => (format!("agent-{id}"), "agent"),
        Principal::Generator(id) => (format!("generator-{id}"), "generator"),
        Principal::Holder => ("holder".to_owned(), "holder"),
    };
    let (text, secret) = draw(context)?;
    let new = NewKey {
        id: ApiKeyId::new(context.entropy.uuid()),
        name,
        owner: owner.to_owned(),
        reach: None,
        role: Role::Viewer,
        principal,
        project: None,
        lifetime: None,
        secret,
    };
    Ok((text, new))
}

/// Makes the key in the commit that makes its agent or generator.
pub(crate) fn with_key(
    mut commit: Commit,
    key: &NewKey,
    project: Option<ProjectId>,
    now: Timestamp,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let text = KnownText::default();
    let snapshot = KeySnapshot { now, key: None, project, usable_admins: Vec::new(), text };
    let bound = NewKey { project: project.map(|id| id.to_string()), ..key.clone() };
    commit.join(api_key_rules::create(&snapshot, &bound, actor)?);
    Ok(commit)
}

/// The text of the key of an agent or a generator, which replaces the one before and ends it
/// at once.
pub(crate) async fn key(
    context: &Context,
    principal: Principal,
    project: ProjectId,
    actor: &Actor,
) -> Result<Secret, Error> {
    let (text, drawn) = draw_key(context, principal)?;
    let new = NewKey { project: Some(project.to_string()), ..drawn };
    let mut rule = |snapshot: &KeySnapshot| match &snapshot.key {
        None => api_key_rules::create(snapshot, &new, actor),
        Some(_) => {
            api_key_rules::rotate(snapshot, &new.secret, Duration::ZERO, Expected::Any, actor)
        }
    };
    let target = KeyTarget::New { name: new.name.clone(), project: new.project.clone() };
    context.stores.kind::<ApiKey>().decide(&target, &mut rule).await?;
    Ok(text)
}

/// The project of a filter; a caller that reaches one project alone has no need of it.
pub async fn filter(
    context: &Context,
    caller: &Caller,
    named: Option<&str>,
) -> Result<Option<ProjectId>, Error> {
    let Some(named) = named else { return Ok(None) };
    Ok(Some(kind::known::<Project>(context, caller, named).await?.id))
}
