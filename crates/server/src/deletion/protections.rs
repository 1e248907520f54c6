//! Protections from deletion.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use slipway_app::access::reference;
use slipway_app::deletion::protection::{self, Change};
use slipway_core::deletion::protection as core;
use slipway_core::operations::reference::unknown;
use slipway_core::subject::{Subject, SubjectKind};
use slipway_core::{ErrorKind, Refusal};
use slipway_wire::deletion::{LiftProtection, Protect, Protection};

use crate::error::Rejection;
use crate::request::{Answered, Body, Call, Done, Segments, Untagged, text};

pub(super) async fn list(call: Call) -> Answered {
    let page = call.query.page()?;
    let found = protection::list(&call.context, &call.caller, page).await?;
    Ok(call.page(found.map(document), page.limit))
}

pub(super) async fn set(
    call: Call,
    Segments([kind, reference]): Segments<2>,
    Body(body): Body<Protect>,
) -> Untagged<Protection> {
    let subject = subject(&call, &kind, &reference).await?;
    change(&call, subject, Change::Set, &body.reason).await
}

pub(super) async fn remove(call: Call, Segments([kind, reference]): Segments<2>) -> Done {
    let subject = subject(&call, &kind, &reference).await?;
    let reason = call.query.get("reason").unwrap_or("none given");
    protection::change(&call.context, &call.caller, subject, Change::Remove, reason).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn lift(
    call: Call,
    Segments([kind, reference]): Segments<2>,
    Body(body): Body<LiftProtection>,
) -> Untagged<Protection> {
    let subject = subject(&call, &kind, &reference).await?;
    let duration = Duration::from_secs(body.seconds);
    change(&call, subject, Change::Lift(duration), &body.reason).await
}

async fn change(
    call: &Call,
    subject: Subject,
    change: Change,
    reason: &str,
) -> Untagged<Protection> {
    let after = protection::change(&call.context, &call.caller, subject, change, reason).await?;
    let missing = || Refusal::new(ErrorKind::Internal, "the protection vanished; read it again");
    Ok(Json(document(&after.ok_or_else(missing)?)))
}

/// What the path names, by its kind and its name, its id or the beginning of it.
async fn subject(call: &Call, kind: &str, reference: &str) -> Result<Subject, Rejection> {
    let kind = SubjectKind::parse_field("kind", kind)?;
    let found = reference::find(&call.context, &call.caller, kind, reference).await?;
    let id = found.ok_or_else(|| unknown(kind, reference))?;
    Ok(Subject::new(kind, id))
}

fn document(protection: &core::Protection) -> Protection {
    let lifted = protection.lifted.as_ref();
    Protection {
        kind: protection.subject.kind.to_string(),
        id: protection.subject.id.to_string(),
        name: protection.name.clone(),
        project_id: text(protection.project_id),
        set_by: protection.set_by.clone(),
        set_at: protection.set_at.to_string(),
        reason: protection.reason.clone(),
        lifted_until: text(lifted.map(|lifted| lifted.until)),
        lifted_by: lifted.map(|lifted| lifted.by.clone()),
        lifted_reason: lifted.map(|lifted| lifted.reason.clone()),
    }
}
