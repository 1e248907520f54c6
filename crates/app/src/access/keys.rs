//! API keys: create, show, rotate, revoke. The text of a key is returned once,
//! by the call that made it.

use std::time::Duration;

use slipway_core::access::api_key::{ApiKey, Principal};
use slipway_core::access::api_key_rules::{self, KeySnapshot, NewKey, NewSecret};
use slipway_core::access::idempotency::Request;
use slipway_core::access::key_text::ApiKeyText;
use slipway_core::access::role::Role;
use slipway_core::catalog::Name;
use slipway_core::catalog::name::line;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{ApiKeyId, ProjectId};
use slipway_core::precondition::Expected;
use slipway_core::secret::Secret;
use slipway_core::text::{Reason, check_reference};
use slipway_core::time::Timestamp;

use crate::access::authenticate;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::KeyTarget;
use crate::kind::{self, StoredKind};
use crate::ports::store::{Page, Stores};
use crate::ports::{KindStore, Listed};
use crate::{Context, Error};

/// Revoked keys stay; a list shows those of one project, or all.
impl StoredKind for ApiKey {
    type Key = KeyTarget;
    type Snapshot = KeySnapshot;
    type Filter = Option<ProjectId>;
    const READ: Operation = Operation::KeyRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.access
    }

    fn seen_by(self, caller: &Caller) -> Option<Self> {
        is_reached(caller, &self).then_some(self)
    }
}

/// A requested key, unchecked.
#[derive(Debug, Clone, Default)]
pub struct CreateKey {
    pub name: String,
    pub role: String,
    /// By default that of the key that makes it.
    pub owner: Option<String>,
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
    let name = Name::parse("name", &input.name)?;
    let role = Role::parse(&input.role).ok_or_else(|| {
        Refusal::invalid("role", "must be `viewer`, `operator` or `admin`; each may do more")
    })?;
    let project = input.project.or_else(|| caller.project.map(|own| own.to_string()));
    if let Some(project) = &project {
        check_reference("project", project)?;
    }
    let owner = match input.owner {
        Some(owner) => line("owner", owner.trim(), 1, 100).map_err(Refusal::from)?,
        None => own_owner(context, caller).await?.unwrap_or_else(|| caller.name.clone()),
    };
    let (text, secret) = draw(context)?;
    let new = NewKey {
        id: ApiKeyId::new(context.entropy.uuid()),
        name: name.as_str().to_owned(),
        owner,
        reach: caller.project,
        role,
        principal: Principal::Holder,
        project: project.clone(),
        lifetime: input.ttl_seconds.map(Duration::from_secs),
        secret,
    };
    let target = KeyTarget::New { name: new.name.clone(), project };
    let rule = |snapshot: &KeySnapshot| {
        let reached = snapshot.project.is_none_or(|project| caller.reaches(project));
        let unseen = || KeySnapshot { project: None, ..snapshot.clone() };
        let snapshot = if reached { snapshot } else { &unseen() };
        api_key_rules::create(snapshot, &new, &actor)
    };
    let id = kind::create::<ApiKey>(context, request, new.id, &target, rule).await?;
    Ok((id, text))
}

/// The owner of the caller's own key.
async fn own_owner(context: &Context, caller: &Caller) -> Result<Option<String>, Error> {
    let Some(id) = caller.key_id else { return Ok(None) };
    let own = context.stores.kind::<ApiKey>().fetch(&id.to_string(), true).await?;
    Ok(own.map(|key| key.owner))
}

pub async fn fetch(context: &Context, caller: &Caller, id: ApiKeyId) -> Result<ApiKey, Error> {
    authorise(caller, Operation::KeyRead)?;
    let found = context.stores.kind::<ApiKey>().fetch(&id.to_string(), true).await?;
    let seen = found.and_then(|key| key.seen_by(caller));
    Ok(seen.ok_or_else(api_key_rules::not_found)?)
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    page: Page<ApiKeyId>,
) -> Result<Listed<ApiKey>, Error> {
    kind::list::<ApiKey>(context, caller, &caller.project, page).await
}

/// The key that the caller authenticated with.
pub async fn own(context: &Context, caller: &Caller) -> Result<ApiKey, Error> {
    authorise(caller, Operation::KeyShowOwn)?;
    let own = match caller.key_id {
        Some(id) => context.stores.kind::<ApiKey>().fetch(&id.to_string(), true).await?,
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
    let (text, secret) = draw(context)?;
    let mut rule = |snapshot: &KeySnapshot| {
        let snapshot = &as_reached(caller, snapshot);
        api_key_rules::rotate(snapshot, &secret, overlap, expected, &actor)
    };
    context.stores.kind::<ApiKey>().decide(&KeyTarget::Existing(id), &mut rule).await?;
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
    let reason = reason.map(Reason::parse).transpose()?;
    let mut rule = |snapshot: &KeySnapshot| {
        let snapshot = &as_reached(caller, snapshot);
        api_key_rules::revoke(snapshot, expected, reason.as_ref().map(Reason::as_str), &actor)
    };
    Ok(context.stores.kind::<ApiKey>().decide(&KeyTarget::Existing(id), &mut rule).await?)
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

/// The time by which keys expire: the database's.
pub async fn now(context: &Context) -> Result<Timestamp, Error> {
    Ok(context.stores.operations.database_now().await?)
}

/// A new text, and what is stored of it.
pub(crate) fn draw(context: &Context) -> Result<(Secret, NewSecret), Refusal> {
    let text = authenticate::draw(context);
    let secret = hashed(&text).ok_or_else(|| {
        Refusal::new(ErrorKind::Internal, "a key was drawn that cannot be read back")
    })?;
    Ok((text, secret))
}

/// What is stored of a text; `None` if it is no key.
pub(crate) fn hashed(text: &Secret) -> Option<NewSecret> {
    let parsed = ApiKeyText::parse(text.expose())?;
    Some(NewSecret { short: parsed.short, hash: parsed.hash })
}
