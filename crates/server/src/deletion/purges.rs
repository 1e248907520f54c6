//! Purging a deletion by hand.

use axum::Json;
use axum::http::StatusCode;
use slipway_app::deletion::purge::{PurgeOptions, PurgeReport, purge};
use slipway_core::ids::DeletionId;
use slipway_wire::deletion::{Purge, PurgeDeletion, PurgeReason, PurgeRows};

use super::deletions::member;
use crate::request::{Answered, Body, Call, Id, located};

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

fn document(report: PurgeReport) -> Purge {
    let PurgeReport { deletion, counts, sample, withheld } = report;
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
        withheld: withheld
            .into_iter()
            .map(|one| PurgeReason { code: one.code.to_owned(), message: one.message })
            .collect(),
    }
}
