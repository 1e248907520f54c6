//! Applying documents.

use axum::Json;
use slipway_app::files::apply::{self as app, Applied, Options, Verdict};
use slipway_app::files::read;
use slipway_core::error::Refusal;
use slipway_core::files::fields::Change;
use slipway_wire::broker::FieldChange;
use slipway_wire::files::{AppliedDocument, Apply, DocumentRefusal};

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
