//! Renders objects that differ by agent, when an agent asks for them.

use std::time::Duration;

use slipway_core::fleet::agent::Agent;
use slipway_core::fleet::content::Content;
use slipway_core::fleet::object::DeploymentObject;
use slipway_core::fleet::per_agent::{self, AgentTags, Attempted, PerAgent, RenderSnapshot};
use slipway_core::ids::{AgentId, DeploymentObjectId};
use tokio::time::Instant;

use crate::ports::templates::RenderFailure;
use crate::{Context, Error};

/// After this time an answer begins no other rendering: the rest comes with the next question.
/// One that was begun has limits of its own and comes to its end, so that a slow template is
/// recorded as a problem and does not keep the others from being tried.
const BEGUN_WITHIN: Duration = Duration::from_secs(5);

/// What labels and annotations an agent has.
pub(super) async fn tags_of(context: &Context, agent: AgentId) -> Result<AgentTags, Error> {
    let store = &context.stores.fleet;
    let labels = store.label_list(agent.into()).await?;
    let annotations = store.annotation_list(agent.into()).await?;
    Ok(AgentTags {
        labels: labels.into_iter().map(|one| one.label).collect(),
        annotations: annotations.into_iter().map(|one| (one.key, one.value)).collect(),
    })
}

/// Renders these objects for an agent whose labels and annotations are at `tags`, and records
/// what came of it. Whatever cannot be tried now stays missing.
pub(super) async fn make(
    context: &Context,
    agent: &Agent,
    tags: i64,
    bases: &[DeploymentObjectId],
) -> Result<(), Error> {
    let until = Instant::now() + BEGUN_WITHIN;
    let of_agent = tags_of(context, agent.id).await?;
    let found = context.stores.fleet.objects_fetch(bases).await?;
    let mut attempted = Vec::new();
    for base in &found {
        let Some(per_agent) = &base.per_agent else { continue };
        if Instant::now() >= until {
            break;
        }
        let made = rendered(context, base, per_agent, &of_agent).await;
        attempted.extend(made.map(|made| Attempted { base: base.id, made }));
    }
    let tried: Vec<_> = attempted.iter().map(|one| one.base).collect();
    let mut rule = |snapshot: &RenderSnapshot| per_agent::record(snapshot, tags, &attempted);
    Ok(context.stores.fleet.decide_renderings(agent.id, &tried, &mut rule).await?)
}

/// The content for one agent, or why there is none; `None` if it could not be tried.
async fn rendered(
    context: &Context,
    base: &DeploymentObject,
    per_agent: &PerAgent,
    tags: &AgentTags,
) -> Option<Result<Content, String>> {
    let template = &per_agent.template;
    let values = match per_agent.values(tags) {
        Ok(values) => values,
        Err(problem) => return Some(Err(format!("template `{template}`: {problem}"))),
    };
    match context.templates.render(&base.content, &values).await {
        Ok(text) => Some(Content::parse(&text).map_err(|refusal| {
            format!("template `{template}` makes no manifests: {}", refusal.message)
        })),
        Err(RenderFailure::Template(problem)) => {
            Some(Err(format!("template `{template}` makes nothing of this agent: it {problem}")))
        }
        Err(RenderFailure::Unavailable(why)) => {
            tracing::warn!(object_id = %base.id, %why, "a template could not be rendered now");
            None
        }
    }
}
