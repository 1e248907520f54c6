//! Applying documents.

use axum::Json;
use serde_json::Value;
use slipway_app::files::apply::{self as app, Applied, Options, Verdict};
use slipway_app::files::read;
use slipway_app::topology::plan::Plan;
use slipway_core::error::Refusal;
use slipway_core::files::fields::Change;
use slipway_wire::broker::FieldChange;
use slipway_wire::files::{AppliedDocument, Apply, DocumentRefusal};
use slipway_wire::topology::{PlanObstacle, PlannedGroup, PlannedServer, WorkspacePlan};

use super::document;
use crate::error::field_errors;
use crate::request::{Body, Call, Untagged};

pub(super) async fn apply(call: Call, Body(body): Body<Apply>) -> Untagged<Vec<AppliedDocument>> {
    let Apply { source, documents, dry_run, force } = body;
    if documents.len() > app::MOST_DOCUMENTS {
        let problem = "must have at most 200; send the rest in another request";
        return Err(Refusal::invalid("documents", problem).into());
    }
    let project = read::usual_project(&call.context, &call.caller).await?;
    let drafts = documents.into_iter().map(|one| document::draft(one, &project)).collect();
    let options = Options { source, dry_run, force };
    let applied = app::apply(&call.context, &call.caller, &options, drafts).await?;
    Ok(Json(applied.iter().map(shown).collect()))
}

fn shown(applied: &Applied) -> AppliedDocument {
    let (outcome, refusal) = match &applied.verdict {
        Verdict::Created => ("created", None),
        Verdict::Changed => ("changed", None),
        Verdict::Unchanged => ("unchanged", None),
        Verdict::Refused(refusal) => ("refused", Some(refused(refusal))),
    };
    AppliedDocument {
        outcome: outcome.to_owned(),
        changes: applied.changes.iter().map(change).collect(),
        refusal,
        secret: applied.secret.as_ref().map(|secret| secret.expose().to_owned()),
        plan: applied.plan.as_ref().map(plan),
    }
}

fn plan(plan: &Plan) -> WorkspacePlan {
    let created = plan.created.iter().map(|one| PlannedGroup {
        group: one.group.clone(),
        role: one.role.as_str().to_owned(),
        count: one.count,
    });
    let servers = plan.servers.iter().map(|one| PlannedServer {
        server: one.server.clone(),
        group: one.group.clone(),
        action: match (one.way, &one.refusal) {
            (None, _) => "delete",
            (Some(_), Some(_)) => "blocked",
            (Some(way), None) => way.as_str(),
        }
        .to_owned(),
        blocked: one.refusal.as_ref().map(obstacles).unwrap_or_default(),
    });
    WorkspacePlan {
        digest: plan.digest.clone(),
        created: created.collect(),
        servers: servers.collect(),
        further: u32::try_from(plan.further).unwrap_or(u32::MAX),
    }
}

/// Each gate that refuses, or the refusal itself.
fn obstacles(refusal: &Refusal) -> Vec<PlanObstacle> {
    let gates = refusal.details.as_ref().and_then(|details| details["gates"].as_array());
    let text = |gate: &Value, name: &str| gate[name].as_str().unwrap_or_default().to_owned();
    match gates {
        Some(gates) => gates
            .iter()
            .map(|gate| PlanObstacle { code: text(gate, "code"), message: text(gate, "message") })
            .collect(),
        None => refusal
            .faults()
            .map(|fault| PlanObstacle {
                code: fault.kind.code().to_owned(),
                message: fault.message.clone(),
            })
            .collect(),
    }
}

fn change(change: &Change) -> FieldChange {
    let Change { path, before, after } = change.clone();
    FieldChange { field: path, before, after }
}

fn refused(refusal: &Refusal) -> DocumentRefusal {
    DocumentRefusal {
        code: refusal.kind.code().to_owned(),
        message: refusal.message.clone(),
        details: refusal.details.clone(),
        errors: field_errors(refusal),
    }
}
