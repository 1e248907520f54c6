//! Bootstrap tokens by hand: issue, show, revoke. The text of a token is
//! returned once, by the call that made it.

use std::time::Duration;

use slipway_core::access::idempotency::Request;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::Commit;
use slipway_core::error::Refusal;
use slipway_core::ids::{BootstrapTokenId, ResourceId};
use slipway_core::nodes::reenrol;
use slipway_core::nodes::token::{BootstrapToken, SecretHash, TokenKind, TokenText};
use slipway_core::nodes::tokens_by_hand::{self, Issue};
use slipway_core::secret::Secret;
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::idempotency::{bind, record};
use crate::access::port::Owned;
use crate::access::reach;
use crate::broker::port::ResourceKey;
use crate::ports::Listed;
use crate::ports::store::{self, Page};
use crate::{Context, Error};

/// Issues a token for the current attempt of a resource and revokes the
/// previous one. The default lifetime is that of the loop's tokens.
pub async fn issue(
    context: &Context,
    caller: &Caller,
    resource: ResourceId,
    kind: &str,
    lifetime: Option<Duration>,
    request: Option<Request>,
) -> Result<(BootstrapTokenId, Secret), Error> {
    let actor = authorise(caller, Operation::TokenIssue)?;
    reach::reach_resource(context, caller, resource).await?;
    let kind = TokenKind::parse(kind)
        .ok_or_else(|| Refusal::invalid("kind", "must be `node`, or left out"))?;
    let rule = |snapshot: &_, issue| tokens_by_hand::issue(snapshot, issue, &actor);
    issue_by(context, resource, kind, lifetime, request, &rule).await
}

/// Ends the silent or departed node of a resource and issues a token for its machine.
pub async fn reenrol(
    context: &Context,
    caller: &Caller,
    resource: ResourceId,
    reason: &str,
    lifetime: Option<Duration>,
    request: Option<Request>,
) -> Result<(BootstrapTokenId, Secret), Error> {
    let actor = authorise(caller, Operation::ResourceReenrol)?;
    reach::reach_resource(context, caller, resource).await?;
    let reason = Reason::parse(reason)?;
    let rule = |snapshot: &_, issue| reenrol::request(snapshot, issue, &reason, &actor);
    let issued = issue_by(context, resource, TokenKind::Node, lifetime, request, &rule).await?;
    tracing::info!(resource_id = %resource, "the machine of a resource may enrol again");
    Ok(issued)
}

/// Draws a token and decides about it by this rule.
async fn issue_by(
    context: &Context,
    resource: ResourceId,
    kind: TokenKind,
    lifetime: Option<Duration>,
    request: Option<Request>,
    rule: &(dyn Fn(&ResourceSnapshot, Issue) -> Result<Commit, Refusal> + Send + Sync),
) -> Result<(BootstrapTokenId, Secret), Error> {
    let project = context.stores.access.project_of(Owned::Resource(resource)).await?;
    let project = project.ok_or(store::Error::NotFound { kind: ResourceId::KIND })?;
    let mut random = [0; 32];
    context.entropy.fill(&mut random);
    let environment = &context.settings.token_environment;
    let text = TokenText::mint(environment, project, kind, &random);
    let issue = Issue {
        id: BootstrapTokenId::new(context.entropy.uuid()),
        hash: SecretHash::of(text.expose().as_bytes()),
        kind,
        lifetime: lifetime.unwrap_or(context.settings.token_lifetimes.ttl),
    };
    let record = record(context, request, issue.id.as_uuid());
    context
        .stores
        .broker
        .decide(ResourceKey::Resource(resource), &mut |snapshot| {
            Ok(bind(rule(snapshot, issue)?, record.as_ref()))
        })
        .await?;
    context.wakes.wake();
    Ok((issue.id, text))
}

pub async fn fetch(
    context: &Context,
    caller: &Caller,
    id: BootstrapTokenId,
) -> Result<BootstrapToken, Error> {
    authorise(caller, Operation::TokenRead)?;
    found(context, caller, id).await
}

/// Those of all attempts of a resource.
pub async fn list(
    context: &Context,
    caller: &Caller,
    resource: ResourceId,
    page: Page<BootstrapTokenId>,
) -> Result<Listed<BootstrapToken>, Error> {
    authorise(caller, Operation::TokenRead)?;
    reach::reach_resource(context, caller, resource).await?;
    let project = context.stores.access.project_of(Owned::Resource(resource)).await?;
    project.ok_or(store::Error::NotFound { kind: ResourceId::KIND })?;
    Ok(context.stores.nodes.token_list(resource, page).await?)
}

pub async fn revoke(
    context: &Context,
    caller: &Caller,
    id: BootstrapTokenId,
    reason: Option<&str>,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::TokenRevoke)?;
    let token = found(context, caller, id).await?;
    let reason = reason.map(Reason::parse).transpose()?;
    let mut rule = |snapshot: &_| {
        tokens_by_hand::revoke(snapshot, id, reason.as_ref().map(Reason::as_str), &actor)
    };
    context.stores.broker.decide(ResourceKey::Token(token.hash), &mut rule).await?;
    context.wakes.wake();
    Ok(())
}

async fn found(
    context: &Context,
    caller: &Caller,
    id: BootstrapTokenId,
) -> Result<BootstrapToken, Error> {
    reach::reach(context, caller, Owned::Token(id), || tokens_by_hand::not_found().into()).await?;
    Ok(context.stores.nodes.token_fetch(id).await?.ok_or_else(tokens_by_hand::not_found)?)
}
