//! Idempotent creates. [`slipway_core::access::idempotency`] defines what happens only
//! once; this file gives a create and its repetition the same answer.

use slipway_core::access::AccessWrite;
use slipway_core::access::idempotency::{Answer, Entry, Request};
use slipway_core::commit::{Commit, Write};
use uuid::Uuid;

use crate::access::port::AnsweredEntry;
use crate::{Context, Error};

/// The entry of this request's key. Refuses if the key belongs to another request.
pub async fn find(context: &Context, request: &Request) -> Result<Option<AnsweredEntry>, Error> {
    let found =
        context.stores.access.idempotency_find(&request.caller, request.key.as_str()).await?;
    if let Some(bound) = &found {
        bound.record.check(request)?;
    }
    Ok(found)
}

/// Stores the answer for repeated requests and returns the stored one. Of two
/// concurrent requests only the first stores its own; what was created may have
/// changed before the second read it.
pub async fn keep(context: &Context, record: &Entry, answer: Answer) -> Result<Answer, Error> {
    let stored = context.stores.access.idempotency_answer(record.id, &answer).await?;
    Ok(stored.unwrap_or(answer))
}

/// The entry that binds the key of a create, drawn before the transaction.
pub(crate) fn record(
    context: &Context,
    request: Option<Request>,
    subject_id: Uuid,
) -> Option<Entry> {
    request.map(|request| Entry { id: context.entropy.uuid(), request, subject_id })
}

/// Adds the key to the commit of a create. It is the first write, so that a
/// second request waits there before it has written anything.
pub(crate) fn bind(mut commit: Commit, record: Option<&Entry>) -> Commit {
    if let Some(record) = record {
        let write = AccessWrite::IdempotencyInsert(record.clone());
        commit.writes.insert(0, Write::Access(write));
    }
    commit
}
