//! API keys: create, show, rotate, revoke. The text of a key is returned once,
//! by the call that made it.

use std::time::Duration;

use slipway_core::access::api_key::ApiKey;
use slipway_core::access::api_key_rules::{self, KeySnapshot, NewKey, NewSecret};
use slipway_core::access::idempotency::Request;
use slipway_core::access::key_text::ApiKeyText;
use slipway_core::access::role::Role;
use slipway_core::catalog::Name;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::ApiKeyId;
use slipway_core::precondition::Expected;
use slipway_core::secret::Secret;
use slipway_core::text::{Reason, check_reference};

use crate::access::authenticate;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::idempotency::{bind, record};
use crate::access::port::KeyTarget;
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::{Context, Error};

/// A requested key, unchecked.
#[derive(Debug, Clone, Default)]
pub struct CreateKey {
    pub name: String,
    pub role: String,
    /// Name or id; by default the caller's own, if it reaches only one.
    pub project: Option<String>,
    pub ttl_seconds: Option<u64>,
}

/// A caller that is bound to a project can create keys for that project only.
pub async fn create(
    context: &Context,
    caller: &Caller,
    input: CreateKey,
    request: Option<Request>,
) -> Result<(ApiKeyId, Secret), Error> {
    let actor = authorise(caller, Operation::KeyCreate)?;
    let name = Name::parse("name", &input.name).map_err(Refusal::from)?;
    let role = Role::parse(&input.role).ok_or_else(|| {
        Refusal::invalid("role", "must be `viewer`, `operator` or `admin`; each may do more")
    })?;
    let project = input.project.or_else(|| caller.project.map(|own| own.to_string()));
    if let Some(project) = &project {
        check_reference("project", project).map_err(Refusal::from)?;
    }
    let text = authenticate::draw(context);
    let new = NewKey {
        id: ApiKeyId::new(context.entropy.uuid()),
        name: name.as_str().to_owned(),
        reach: caller.project,
        role,
        project: project.clone(),
        lifetime: input.ttl_seconds.map(Duration::from_secs),
        secret: hashed(&text)?,
    };
    let record = record(context, request, new.id.as_uuid());
    let target = KeyTarget::New { name: new.name.clone(), project };
    context
        .stores
        .access
        .decide_api_key(&target, &mut |snapshot| {
            let reached = snapshot.project.is_none_or(|project| caller.reaches(project));
            let unseen = || KeySnapshot { project: None, ..snapshot.clone() };
            let snapshot = if reached { snapshot } else { &unseen() };
            Ok(bind(api_key_rules::create(snapshot, &new, &actor)?, record.as_ref()))
        })
        .await?;
    Ok((new.id, text))
}

pub async fn fetch(context: &Context, caller: &Caller, id: ApiKeyId) -> Result<ApiKey, Error> {
    authorise(caller, Operation::KeyRead)?;
    let found = context.stores.access.api_key_fetch(id).await?;
    Ok(found.filter(|key| is_reached(caller, key)).ok_or_else(api_key_rules::not_found)?)
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    page: Page<ApiKeyId>,
) -> Result<Listed<ApiKey>, Error> {
    authorise(caller, Operation::KeyRead)?;
    Ok(context.stores.access.api_key_list(caller.project, page).await?)
}

/// The key that the caller authenticated with.
pub async fn own(context: &Context, caller: &Caller) -> Result<ApiKey, Error> {
    authorise(caller, Operation::KeyShowOwn)?;
    let own = match caller.key_id {
        Some(id) => context.stores.access.api_key_fetch(id).await?,
        None => None,
    };
    own.ok_or_else(|| {
        Refusal::new(
            ErrorKind::Unauthenticated,
            "the key was replaced a moment ago; use its new text",
        )
        .into()
    })
}

/// Returns the new text. The previous one stays valid for `overlap` from now on.
pub async fn rotate(
    context: &Context,
    caller: &Caller,
    id: ApiKeyId,
    overlap: Duration,
    expected: Expected,
) -> Result<Secret, Error> {
    let actor = authorise(caller, Operation::KeyRotate)?;
    let text = authenticate::draw(context);
    let secret = hashed(&text)?;
    let mut rule = |snapshot: &KeySnapshot| {
        let snapshot = &as_reached(caller, snapshot);
        api_key_rules::rotate(snapshot, &secret, overlap, expected, &actor)
    };
    context.stores.access.decide_api_key(&KeyTarget::Existing(id), &mut rule).await?;
    Ok(text)
}

pub async fn revoke(
    context: &Context,
    caller: &Caller,
    id: ApiKeyId,
    reason: Option<&str>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::KeyRevoke)?;
    let reason = reason.map(Reason::parse).transpose().map_err(Refusal::from)?;
    let mut rule = |snapshot: &KeySnapshot| {
        let snapshot = &as_reached(caller, snapshot);
        api_key_rules::revoke(snapshot, expected, reason.as_ref().map(Reason::as_str), &actor)
    };
    Ok(context.stores.access.decide_api_key(&KeyTarget::Existing(id), &mut rule).await?)
}

fn is_reached(caller: &Caller, key: &ApiKey) -> bool {
    caller.project.is_none_or(|own| key.project_id == Some(own))
}

/// Hides a key that the caller does not reach.
fn as_reached(caller: &Caller, snapshot: &KeySnapshot) -> KeySnapshot {
    let mut seen = snapshot.clone();
    seen.key = seen.key.filter(|key| is_reached(caller, key));
    seen
}

fn hashed(text: &Secret) -> Result<NewSecret, Refusal> {
    let parsed = ApiKeyText::parse(text.expose()).ok_or_else(|| {
        Refusal::new(ErrorKind::Internal, "a key was drawn that cannot be read back")
    })?;
    Ok(NewSecret { short: parsed.short, hash: parsed.hash })
}
