//! `slipway explain …`: why something is where it is.

use slipway_core::explanation::ExplainedKind;
use slipway_core::ids::NodeId;

use super::run::Session;
use super::target::{Gone, find};
use crate::arguments::{ExplainArguments, Kind, TargetArguments};
use crate::error::Error;
use crate::render;

pub(super) async fn run(
    session: &mut Session<'_>,
    arguments: ExplainArguments,
) -> Result<(), Error> {
    let ExplainArguments { kind, target, project } = arguments;
    let (kind, reference) = match kind {
        Kind::Resource => return resource(session, &TargetArguments { target, project }).await,
        Kind::Node => (ExplainedKind::Node, node(session, target).await?),
        Kind::Deletion => (ExplainedKind::Deletion, target),
        Kind::Project => (ExplainedKind::Project, target),
        Kind::Cluster => (ExplainedKind::Cluster, target),
        Kind::Token => (ExplainedKind::Token, target),
        Kind::Leak => (ExplainedKind::Leak, target),
    };
    let explanation = session.client.explain(kind.as_str(), &reference).await?;
    session.show(&explanation, |explanation, _| render::explanation(explanation));
    Ok(())
}

/// A handle is looked up, also one that is gone. A row that is held cannot be
/// looked at, but it can be explained, so an id is not looked up.
pub(super) async fn resource(
    session: &mut Session<'_>,
    target: &TargetArguments,
) -> Result<(), Error> {
    let id = match target.target.parse::<slipway_core::ids::ResourceId>() {
        Ok(id) => id.to_string(),
        Err(_) => find(&session.client, target, Gone::Allowed).await?.id,
    };
    let explanation = session.client.explain(ExplainedKind::Resource.as_str(), &id).await?;
    session.show(&explanation, |explanation, _| render::explanation(explanation));
    Ok(())
}

/// A host name means the registered node of that name, or the last one that was.
async fn node(session: &Session<'_>, target: String) -> Result<String, Error> {
    if target.parse::<NodeId>().is_ok() {
        return Ok(target);
    }
    let nodes = session.client.node_list(None).await?.items;
    let named: Vec<_> = nodes.into_iter().filter(|node| node.hostname == target).collect();
    let registered: Vec<_> = named.iter().filter(|node| node.registered).collect();
    if registered.len() > 1 {
        let ids: Vec<_> = registered.iter().map(|node| node.id.as_str()).collect();
        return Err(Error::Usage(format!(
            "`{target}` is the host name of the nodes {}; choose one by its id",
            ids.join(", ")
        )));
    }
    let found = registered.first().copied().or(named.last()).map(|node| node.id.clone());
    found.ok_or_else(|| {
        Error::NotFound(format!(
            "there is no node with the host name `{target}`; see `slipway node list`"
        ))
    })
}
