//! Creates that are asked for twice. What happens once is said in
//! [`slipway_core::idempotency`]; here is how a create and its repetition are
//! brought to one answer.

use slipway_core::catalog::CatalogWrite;
use slipway_core::commit::{Commit, Write};
use slipway_core::idempotency::{Answer, Entry, Request};
use uuid::Uuid;

use crate::ports::access::AnsweredEntry;
use crate::{Context, Error};

/// What the key of this request is bound to. Refuses if it was another request.
pub async fn find(context: &Context, request: &Request) -> Result<Option<AnsweredEntry>, Error> {
    let found =
        context.stores.access.idempotency_find(&request.caller, request.key.as_str()).await?;
    if let Some(bound) = &found {
        bound.record.check(request)?;
    }
    Ok(found)
}

/// Keeps what was answered, for whoever asks again.
pub async fn keep(context: &Context, record: &Entry, answer: &Answer) -> Result<(), Error> {
    Ok(context.stores.access.idempotency_answer(record.id, answer).await?)
}

/// The record that a create binds its key with, drawn before the transaction.
pub(super) fn record(
    context: &Context,
    request: Option<Request>,
    subject_id: Uuid,
) -> Option<Entry> {
    request.map(|request| Entry { id: context.entropy.uuid(), request, subject_id })
}

/// The commit of a create with its key bound: first of all, so that a second
/// request waits there and has written nothing yet.
pub(super) fn bind(mut commit: Commit, record: Option<&Entry>) -> Commit {
    if let Some(record) = record {
        let write = CatalogWrite::IdempotencyInsert(record.clone());
        commit.writes.insert(0, Write::Catalog(Box::new(write)));
    }
    commit
}
