//! Starting, showing and controlling roll-outs.

use axum::Json;
use axum::http::StatusCode;
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_app::rollouts::port::RolloutFilter;
use slipway_app::rollouts::start::Planned;
use slipway_app::rollouts::upgrade::{self, Upgrade};
use slipway_app::rollouts::{control, read};
use slipway_core::ids::RolloutId;
use slipway_core::rollouts::record::{self, MemberState, Progress, RolloutState, Strategy};
use slipway_wire::rollouts::{
    AbortRollout, PauseRollout, ResumeRollout, Rollout, RolloutMember, RolloutStrategy,
    UpgradeBlueprint,
};

use crate::error::Rejection;
use crate::request::{Answered, Body, Call, Id, Referring, Segments, Untagged, located, text};

/// Members that the answer to a dry run names.
const NAMED: usize = 20;

pub(super) async fn upgrade(
    call: Call,
    Segments([blueprint]): Segments<1>,
    Body(body): Body<UpgradeBlueprint>,
) -> Answered {
    let input = Upgrade {
        blueprint,
        to: body.to,
        project: body.project,
        labels: body.labels,
        strategy: strategy(body.strategy),
        reason: body.reason,
    };
    if body.dry_run {
        return planned(&call, upgrade::plan(&call.context, &call.caller, &input).await?).await;
    }
    started(&call, upgrade::start(&call.context, &call.caller, &input).await?).await
}

/// What a dry run would change.
pub(crate) async fn planned(call: &Call, Planned { rollout, members }: Planned) -> Answered {
    let count = u64::try_from(members.len()).unwrap_or(u64::MAX);
    let progress = Progress(vec![(MemberState::Waiting, count)]);
    let first = members.iter().take(NAMED).map(member).collect();
    let planned = Rollout { id: None, first, ..document(&rollout, &progress) };
    let planned = call.named(planned).await?;
    Ok(located(StatusCode::OK, "/api/v1/rollouts".to_owned(), Json(planned)))
}

/// A roll-out that began.
pub(crate) async fn started(call: &Call, id: RolloutId) -> Answered {
    let started = shown(call, id).await?;
    Ok(located(StatusCode::ACCEPTED, format!("/api/v1/rollouts/{id}"), Json(started)))
}

/// A strategy as it is given; what is left out is as usual.
pub(crate) fn strategy(given: RolloutStrategy) -> Strategy {
    let default = Strategy::default();
    Strategy {
        canary: given.canary.unwrap_or(default.canary),
        parallel: given.parallel.unwrap_or(default.parallel),
        failures_allowed: given.failures_allowed.unwrap_or(default.failures_allowed),
        healthy_within_seconds: given
            .healthy_within_seconds
            .unwrap_or(default.healthy_within_seconds),
        waves: given.waves,
        wait_for_health: given.wait_for_health,
    }
}

pub(super) async fn list(call: Call) -> Answered {
    let page = call.query.page()?;
    let parse = |text| RolloutState::parse_field("state", text);
    let filter = RolloutFilter {
        own: None,
        state: call.query.get("state").map(parse).transpose()?,
        subject: call.query.text("subject"),
    };
    let found = read::rollouts(&call.context, &call.caller, filter, page).await?;
    let listed = found.map(|(rollout, progress)| document(rollout, progress));
    call.named_page(listed, page.limit).await
}

pub(super) async fn get(call: Call, Id(id): Id<RolloutId>) -> Untagged<Rollout> {
    Ok(Json(shown(&call, id).await?))
}

/// The cursor is the position of the last member.
pub(super) async fn members(call: Call, Id(id): Id<RolloutId>) -> Answered {
    let page: Page<i32> = call.query.page()?;
    let parse = |text| MemberState::parse_field("state", text);
    let state = call.query.get("state").map(parse).transpose()?;
    let found = read::members(&call.context, &call.caller, id, state, page).await?;
    let listed = Listed::complete(found, page.limit, |last| last.position).map(member);
    Ok(call.page(listed, page.limit))
}

pub(super) async fn pause(
    call: Call,
    Id(id): Id<RolloutId>,
    Body(body): Body<PauseRollout>,
) -> Untagged<Rollout> {
    let reason = body.reason.as_deref();
    named(&call, control::pause(&call.context, &call.caller, id, reason).await?).await
}

pub(super) async fn resume(
    call: Call,
    Id(id): Id<RolloutId>,
    Body(body): Body<ResumeRollout>,
) -> Untagged<Rollout> {
    named(&call, control::resume(&call.context, &call.caller, id, body.skip_failed).await?).await
}

pub(super) async fn abort(
    call: Call,
    Id(id): Id<RolloutId>,
    Body(body): Body<AbortRollout>,
) -> Untagged<Rollout> {
    let reason = body.reason.as_deref();
    named(&call, control::abort(&call.context, &call.caller, id, false, reason).await?).await
}

pub(super) async fn roll_back(
    call: Call,
    Id(id): Id<RolloutId>,
    Body(body): Body<AbortRollout>,
) -> Answered {
    let reason = body.reason.as_deref();
    control::abort(&call.context, &call.caller, id, true, reason).await?;
    let back = shown(&call, id).await?;
    Ok(located(StatusCode::ACCEPTED, format!("/api/v1/rollouts/{id}"), Json(back)))
}

async fn shown(call: &Call, id: RolloutId) -> Result<Rollout, Rejection> {
    let (rollout, progress) = read::rollout(&call.context, &call.caller, id).await?;
    call.named(document(&rollout, &progress)).await
}

async fn named(call: &Call, (rollout, progress): (record::Rollout, Progress)) -> Untagged<Rollout> {
    Ok(Json(call.named(document(&rollout, &progress)).await?))
}

impl Referring for Rollout {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        vec![(self.project_id.as_deref(), &mut self.project)]
    }
}

fn document(rollout: &record::Rollout, progress: &Progress) -> Rollout {
    let counts = progress.0.iter();
    Rollout {
        id: Some(rollout.id.to_string()),
        purpose: rollout.purpose.to_string(),
        title: rollout.title(),
        subject_kind: rollout.subject.kind.to_string(),
        subject: rollout.name.clone(),
        subject_id: rollout.subject.id.to_string(),
        project: None,
        project_id: text(rollout.project_id),
        change: rollout.change.clone(),
        strategy: strategy_document(&rollout.strategy),
        state: rollout.state.to_string(),
        message: rollout.message.clone(),
        progress: counts.map(|(state, count)| (state.to_string(), *count)).collect(),
        members: progress.total(),
        requested_by: rollout.requested_by.clone(),
        reason: rollout.reason.clone(),
        requested_at: rollout.requested_at.to_string(),
        ended_at: text(rollout.ended_at),
        first: Vec::new(),
    }
}

pub(crate) fn strategy_document(strategy: &Strategy) -> RolloutStrategy {
    RolloutStrategy {
        canary: Some(strategy.canary),
        parallel: Some(strategy.parallel),
        failures_allowed: Some(strategy.failures_allowed),
        healthy_within_seconds: Some(strategy.healthy_within_seconds),
        waves: strategy.waves.clone(),
        wait_for_health: strategy.wait_for_health,
    }
}

fn member(member: &record::Member) -> RolloutMember {
    RolloutMember {
        kind: member.subject.kind.to_string(),
        name: member.name.clone(),
        id: member.subject.id.to_string(),
        wave: member.wave,
        position: member.position,
        state: member.state.to_string(),
        before: member.before.clone(),
        changed_at: text(member.changed_at),
        message: member.message.clone(),
    }
}
