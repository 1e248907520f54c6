//! Definitions of a blueprint per cluster: version wanted and version found.

use slipway_app::catalog::blueprints;
use slipway_core::placement::definitions::{DefinitionPhase, DefinitionsView};
use slipway_wire::placement::BlueprintDefinitions;

use crate::request::{Answered, Call, Segments, text};

pub(super) async fn list(call: Call, Segments([blueprint]): Segments<1>) -> Answered {
    let (page, deleted) = (call.query.page()?, call.query.flag("show_deleted")?);
    let (_, found) =
        blueprints::definitions(&call.context, &call.caller, &blueprint, page, deleted).await?;
    Ok(call.page(found.map(document), page.limit))
}

/// Definitions that no loop has observed yet are Pending, and so are those that
/// were last observed for another version than the wanted one.
fn document(shown: &DefinitionsView) -> BlueprintDefinitions {
    let known = shown.definitions.as_ref();
    let current = known.filter(|known| shown.wanted.as_ref().is_none_or(|w| *w == known.wanted));
    let phase = current.map_or(DefinitionPhase::Pending, |known| known.phase);
    BlueprintDefinitions {
        cluster: shown.cluster.clone(),
        cluster_id: shown.cluster_id.to_string(),
        wanted_version: shown.wanted.clone(),
        found_version: known.and_then(|known| known.found.clone()),
        phase: phase.to_string(),
        problem: known.and_then(|known| known.problem.clone()),
        since: text(known.map(|known| known.since)),
        updated_at: text(known.map(|known| known.updated_at)),
    }
}
