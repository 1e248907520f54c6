//! Purging a deletion, or those that fit, by hand.

use axum::Json;
use axum::http::StatusCode;
use slipway_app::deletion::purge::{PurgeFilter, PurgeOptions, PurgeReport, purge, purge_many};
use slipway_core::deletion::purge::Withheld;
use slipway_core::deletion::record::Deletion;
use slipway_core::error::Refusal;
use slipway_core::ids::{DeletionId, GeneratorId};
use slipway_core::subject::SubjectKind;
use slipway_wire::deletion::{
    Purge, PurgeDeletion, PurgeDeletions, PurgeReason, PurgeRows, PurgedDeletion, PurgedDeletions,
};

use super::deletions::member;
use crate::request::{Answered, Body, Call, Id, Untagged, located};

/// 200 with a count; 202 if the purge began.
pub(super) async fn request(
    call: Call,
    Id(id): Id<DeletionId>,
    Body(body): Body<PurgeDeletion>,
) -> Answered {
    let options = PurgeOptions {
        force: body.force,
        reason: body.reason.as_deref(),
        despite_protection: body.despite_protection,
        now: body.now,
    };
    let report = purge(&call.context, &call.caller, id, options).await?;
    let status = if body.force || body.now { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(located(status, format!("/api/v1/deletions/{id}"), Json(document(report))))
}

/// Counts the deletions that fit; with force, purges them.
pub(super) async fn request_many(
    call: Call,
    Body(body): Body<PurgeDeletions>,
) -> Untagged<PurgedDeletions> {
    let parse_generator = |text: &str| {
        text.parse::<GeneratorId>().map_err(|error| Refusal::from(error).at("generator_id"))
    };
    let parse_kind = |text| SubjectKind::parse_field("kind", text);
    let filter = PurgeFilter {
        project: body.project,
        generator: body.generator_id.as_deref().map(parse_generator).transpose()?,
        kind: body.kind.as_deref().map(parse_kind).transpose()?,
        name_prefix: body.name_prefix,
        label: body.label,
    };
    let options = PurgeOptions {
        force: body.force,
        reason: body.reason.as_deref(),
        despite_protection: body.despite_protection,
        now: body.now,
    };
    let many = purge_many(&call.context, &call.caller, &filter, options).await?;
    let shown = |(deletion, why): (Deletion, Vec<Withheld>)| PurgedDeletion {
        deletion_id: deletion.id.to_string(),
        kind: deletion.target.kind.to_string(),
        target: Some(deletion.name).filter(|name| !name.is_empty()),
        withheld: withheld(why),
    };
    let deletions = many.sample.into_iter().map(shown).collect();
    Ok(Json(PurgedDeletions { found: many.found, begun: many.begun, deletions }))
}

fn withheld(reasons: Vec<Withheld>) -> Vec<PurgeReason> {
    let reason = |one: Withheld| PurgeReason { code: one.code.to_owned(), message: one.message };
    reasons.into_iter().map(reason).collect()
}

fn document(report: PurgeReport) -> Purge {
    let PurgeReport { deletion, counts, sample, withheld: reasons } = report;
    Purge {
        deletion_id: deletion.id.to_string(),
        kind: deletion.target.kind.to_string(),
        target: Some(deletion.name).filter(|name| !name.is_empty()),
        state: deletion.state.to_string(),
        total: counts.iter().map(|(_, rows)| rows).sum(),
        tables: counts
            .into_iter()
            .map(|(table, rows)| PurgeRows { table: table.to_owned(), rows })
            .collect(),
        sample: sample.shown.into_iter().map(member).collect(),
        withheld: withheld(reasons),
    }
}
