//! Deletions: what is removed, by whom and why.

use axum::Json;
use axum::http::StatusCode;
use slipway_app::deletion::port::{DeletionFilter, Member, Members};
use slipway_app::deletion::{read, request};
use slipway_app::fleet::offers;
use slipway_core::deletion::record::{self, DeletionState};
use slipway_core::fleet::offer::Delivery;
use slipway_core::ids::DeletionId;
use slipway_core::subject::SubjectKind;
use slipway_wire::deletion::{AgentRemoval, CancelDeletion, Deletion, DeletionMember};

use crate::request::{Answered, Body, Call, Id, Referring, Untagged, located, text};

/// The most agents and stacks that one deletion shows.
const AGENTS_SHOWN: u32 = 200;

pub(super) async fn list(call: Call) -> Answered {
    let page = call.query.page()?;
    let parse_state = |text| DeletionState::parse_field("state", text);
    let parse_kind = |text| SubjectKind::parse_field("kind", text);
    let filter = DeletionFilter {
        own: None,
        project: call.query.text("project"),
        state: call.query.get("state").map(parse_state).transpose()?,
        kind: call.query.get("kind").map(parse_kind).transpose()?,
        name: call.query.text("name"),
        requested_by: call.query.text("requested_by"),
        restorable: call.query.flag("restorable")?,
        ..DeletionFilter::default()
    };
    let found = read::deletions(&call.context, &call.caller, filter, page).await?;
    call.named_page(found.map(document), page.limit).await
}

pub(super) async fn get(call: Call, Id(id): Id<DeletionId>) -> Untagged<Deletion> {
    Ok(Json(shown(&call, id).await?))
}

pub(super) async fn cancel(
    call: Call,
    Id(id): Id<DeletionId>,
    Body(body): Body<CancelDeletion>,
) -> Untagged<Deletion> {
    request::cancel(&call.context, &call.caller, id, body.reason.as_deref()).await?;
    Ok(Json(shown(&call, id).await?))
}

/// The answer to a request that led to a deletion: the record and its location.
pub(crate) async fn answer(call: &Call, status: StatusCode, id: DeletionId) -> Answered {
    let document = shown(call, id).await?;
    Ok(located(status, format!("/api/v1/deletions/{id}"), Json(document)))
}

/// One deletion with its first members.
pub(super) async fn shown(
    call: &Call,
    id: DeletionId,
) -> Result<Deletion, crate::error::Rejection> {
    let (found, members) = read::deletion_with_members(&call.context, &call.caller, id).await?;
    let Members { shown, count } = members;
    let owed = match found.target.kind {
        SubjectKind::Stack | SubjectKind::Generator | SubjectKind::Project => {
            offers::deliveries(&call.context, &call.caller, id, AGENTS_SHOWN).await?
        }
        _ => Vec::new(),
    };
    let document = Deletion {
        members: shown.into_iter().map(member).collect(),
        member_count: Some(count),
        deliveries: owed.into_iter().map(removal).collect(),
        ..document(&found)
    };
    call.named(document).await
}

fn removal(removal: Delivery) -> AgentRemoval {
    AgentRemoval {
        agent: removal.agent,
        agent_id: removal.agent_id.to_string(),
        stack: removal.stack,
        stack_id: removal.stack_id.to_string(),
        removed_at: text(removal.removed_at),
        agent_deleted: removal.is_agent_deleted,
    }
}

pub(super) fn member(member: Member) -> DeletionMember {
    DeletionMember {
        kind: member.subject.kind.to_string(),
        name: Some(member.name),
        id: member.subject.id.to_string(),
    }
}

impl Referring for Deletion {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        vec![(self.project_id.as_deref(), &mut self.project)]
    }
}

fn document(deletion: &record::Deletion) -> Deletion {
    Deletion {
        id: deletion.id.to_string(),
        kind: deletion.target.kind.to_string(),
        target: Some(deletion.name.clone()).filter(|name| !name.is_empty()),
        target_id: deletion.target.id.to_string(),
        state: deletion.state.to_string(),
        requested_by: deletion.requested_by.clone(),
        reason: deletion.reason.clone(),
        project: None,
        project_id: text(deletion.project_id),
        parent_id: text(deletion.parent),
        cascade: deletion.cascade,
        resources: deletion.resources,
        members: Vec::new(),
        member_count: None,
        deliveries: Vec::new(),
        requested_at: deletion.requested_at.to_string(),
        scheduled_for: text(deletion.scheduled_for),
        done_at: text(deletion.done_at),
        restorable_until: text(deletion.restorable_until),
        purge_protected: deletion.purge_protected,
        ended_at: text(deletion.ended_at),
    }
}
