//! Authentication: API keys of people and programs, node keys of agents. The
//! answer is the same whatever is wrong with a key.

use slipway_core::access::api_key::ApiKey;
use slipway_core::access::api_key_rules::{
    self, Install, Installed, InstalledKey, KeySnapshot, NewSecret,
};
use slipway_core::access::audit::Actor;
use slipway_core::access::key_text::{ApiKeyText, NodeKeyText};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{ApiKeyId, NodeId};
use slipway_core::secret::Secret;

use crate::access::authorise::Caller;
use crate::access::keys;
use crate::access::port::KeyTarget;
use crate::{Context, Error};

/// The caller that an API key belongs to. Whether the key has expired is decided
/// by the database's clock, like the time of its expiry: a replica whose own clock
/// is wrong neither extends a key nor cuts it short.
pub async fn api_key(context: &Context, text: &str, correlation_id: &str) -> Result<Caller, Error> {
    let parsed = ApiKeyText::parse(text).ok_or_else(unknown_key)?;
    let candidates = context.stores.access.api_key_candidates(&parsed.short).await?;
    let found = candidates.into_iter().find(|found| found.key.accepts(&parsed, found.now));
    let key = found.ok_or_else(unknown_key)?.key;
    Ok(Caller {
        name: key.name,
        role: key.role,
        principal: key.principal,
        project: key.project_id,
        key_id: Some(key.id),
        correlation_id: correlation_id.to_owned(),
    })
}

/// The registered node that a node key belongs to.
pub async fn node_key(context: &Context, text: &str) -> Result<NodeId, Error> {
    match node_key_of_any(context, text).await? {
        (id, true) => Ok(id),
        (_, false) => Err(unknown_key()),
    }
}

/// The node that a node key belongs or belonged to, and whether it is registered.
pub async fn node_key_of_any(context: &Context, text: &str) -> Result<(NodeId, bool), Error> {
    let parsed = NodeKeyText::parse(text).ok_or_else(unknown_key)?;
    let node = context.stores.nodes.node_fetch(parsed.node_id).await?.ok_or_else(unknown_key)?;
    let registered = node.is_registered();
    let key = if registered { node.key_hash } else { node.former_key_hash };
    if key != Some(parsed.hash) {
        return Err(unknown_key());
    }
    Ok((node.id, registered))
}

/// Sets the key of this name to `text`, unless the text was withdrawn. The result
/// tells whether it replaced another one, which then stops working; the audit says
/// who replaced it.
pub async fn install_admin_key(
    context: &Context,
    name: &str,
    text: &Secret,
    actor: &Actor,
) -> Result<Installed, Error> {
    install(context, name, text, Install::Replace, actor).await
}

/// Makes `text`, which the caller has drawn, the first key of an installation.
/// `false` if another usable key exists, also if another replica was faster. A
/// second call with the same text answers as the first did.
pub async fn install_first_admin_key(
    context: &Context,
    name: &str,
    text: &Secret,
    actor: &Actor,
) -> Result<bool, Error> {
    let installed = install(context, name, text, Install::First, actor).await?;
    Ok(matches!(installed, Installed::Inserted | Installed::Replaced | Installed::Unchanged))
}

/// Refuses a text that no key can have.
pub fn check_admin_key(text: &Secret) -> Result<NewSecret, Refusal> {
    let problem = "must have the form slipway_<8 characters>_<20 to 64 characters>";
    keys::hashed(text).ok_or_else(|| Refusal::invalid("admin_key", problem))
}

/// Replicas that start together install one after the other.
async fn install(
    context: &Context,
    name: &str,
    text: &Secret,
    when: Install,
    actor: &Actor,
) -> Result<Installed, Error> {
    let secret = check_admin_key(text)?;
    let id = ApiKeyId::new(context.entropy.uuid());
    let new = InstalledKey { id, name: name.to_owned(), secret };
    let target = KeyTarget::Installed { name: new.name.clone(), secret: new.secret.clone() };
    let mut installed = Installed::Unchanged;
    let mut rule = |snapshot: &KeySnapshot| {
        let (decided, commit) = api_key_rules::install(snapshot, &new, when, actor);
        installed = decided;
        Ok(commit)
    };
    context.stores.kind::<ApiKey>().decide(&target, &mut rule).await?;
    Ok(installed)
}

/// Generates the text of a new key.
pub fn draw(context: &Context) -> Secret {
    let (mut short, mut long) = ([0; 6], [0; 24]);
    context.entropy.fill(&mut short);
    context.entropy.fill(&mut long);
    ApiKeyText::mint(short, long)
}

fn unknown_key() -> Error {
    Refusal::new(
        ErrorKind::Unauthenticated,
        "no valid key was given; send `Authorization: Bearer <key>` with one that is not expired or revoked",
    )
    .into()
}
