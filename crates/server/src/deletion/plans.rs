//! Plans of deletions.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use slipway_app::deletion::plan;
use slipway_core::deletion::plan as core;
use slipway_core::ids::PlanId;
use slipway_wire::deletion::plan::{
    ApprovePlan, DeletionPlan, PlanDeletion, PlanGroup, PlanRefusal, PlanStage,
};

use crate::request::{Answered, Body, Call, Id, Untagged, located, text};
use crate::state::ServerState;

pub(super) async fn create(
    call: Call,
    State(state): State<ServerState>,
    Body(body): Body<PlanDeletion>,
) -> Answered {
    let kind = plan::kind(&body.kind)?;
    let target = plan::target(&call.context, &call.caller, kind, &body.reference).await?;
    let made = plan::plan(&state.finder, &call.caller, target, body.cascade).await?;
    let location = format!("/api/v1/deletion-plans/{}", made.id);
    Ok(located(StatusCode::CREATED, location, Json(document(made))))
}

pub(super) async fn get(call: Call, Id(id): Id<PlanId>) -> Untagged<DeletionPlan> {
    Ok(Json(document(plan::fetch(&call.context, &call.caller, id).await?)))
}

pub(super) async fn approve(
    call: Call,
    Id(id): Id<PlanId>,
    Body(body): Body<ApprovePlan>,
) -> Untagged<DeletionPlan> {
    Ok(Json(document(plan::approve(&call.context, &call.caller, id, &body.reason).await?)))
}

fn document(plan: core::Plan) -> DeletionPlan {
    let shown = plan.shown;
    DeletionPlan {
        id: plan.id.to_string(),
        kind: plan.target.kind.to_string(),
        target: plan.name,
        target_id: plan.target.id.to_string(),
        project_id: text(plan.project_id),
        cascade: plan.cascade,
        planned_by: plan.planned_by,
        planned_at: plan.planned_at.to_string(),
        expires_at: plan.expires_at.to_string(),
        used_by: text(plan.used_by),
        approved_until: text(plan.approval.as_ref().map(|approval| approval.until)),
        approved_by: plan.approval.map(|approval| approval.by),
        digest: plan.digest,
        resources: shown.resources,
        steps: shown.steps.into_iter().map(stage).collect(),
        composed: shown.composed.objects,
        composed_missing: shown.composed.missing,
        protected: shown.protected,
        protected_count: shown.protected_count,
        refusals: shown.refusals.into_iter().map(refusal).collect(),
        withheld: shown.withheld.map(refusal),
        under_way: text(shown.under_way),
        grace_seconds: shown.grace_seconds,
        limit_seconds: shown.limit_seconds,
        typical_seconds: shown.typical_seconds,
        typical_of: shown.typical_of,
    }
}

fn stage(stage: core::Stage) -> PlanStage {
    let group = |group: core::Group| PlanGroup { blueprint: group.blueprint, count: group.count };
    PlanStage {
        action: stage.action.to_string(),
        kind: stage.kind,
        count: stage.count,
        blueprints: stage.groups.into_iter().map(group).collect(),
        names: stage.names,
    }
}

fn refusal(refusal: core::RefusalShown) -> PlanRefusal {
    PlanRefusal { code: refusal.code, message: refusal.message }
}
