//! Deletions: what is removed, by whom and why.

use axum::Json;
use axum::http::StatusCode;
use slipway_app::deletion::read;
use slipway_core::deletion::record;
use slipway_core::ids::DeletionId;
use slipway_wire::deletion::{Deletion, DeletionMember};

use crate::request::{Answered, Call, Id, Referring, Untagged, located, text};

pub(super) async fn list(call: Call) -> Answered {
    let page = call.query.page()?;
    let found = read::deletions(&call.context, &call.caller, page).await?;
    call.named_page(found.map(document), page.limit).await
}

pub(super) async fn get(call: Call, Id(id): Id<DeletionId>) -> Untagged<Deletion> {
    let found = read::deletion(&call.context, &call.caller, id).await?;
    Ok(Json(call.named(document(&found)).await?))
}

/// The answer to a request that led to a deletion: the record and its location.
pub(crate) async fn answer(call: &Call, status: StatusCode, id: DeletionId) -> Answered {
    let found = read::deletion(&call.context, &call.caller, id).await?;
    let document = call.named(document(&found)).await?;
    Ok(located(status, format!("/api/v1/deletions/{id}"), Json(document)))
}

impl Referring for Deletion {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        let members = self.members.iter_mut();
        let members = members.map(|member| (Some(member.id.as_str()), &mut member.name));
        members.chain([(Some(self.target_id.as_str()), &mut self.target)]).collect()
    }
}

fn document(deletion: &record::Deletion) -> Deletion {
    let members = deletion.members.iter();
    Deletion {
        id: deletion.id.to_string(),
        kind: deletion.target.kind.to_string(),
        target: None,
        target_id: deletion.target.id.to_string(),
        state: deletion.state.to_string(),
        requested_by: deletion.requested_by.clone(),
        reason: deletion.reason.clone(),
        members: members
            .map(|member| DeletionMember {
                kind: member.kind.to_string(),
                name: None,
                id: member.id.to_string(),
            })
            .collect(),
        requested_at: deletion.requested_at.to_string(),
        done_at: text(deletion.done_at),
        restorable_until: text(deletion.restorable_until),
    }
}
