//! The table of idempotency keys.
//!
//! A key is inserted in the transaction of the create that it names, before all
//! its other writes. Of two concurrent creates the second waits there until the
//! first is committed, and is then refused, so that its caller reads the key
//! again and finds the first one's answer.

use slipway_app::access::port::AnsweredEntry;
use slipway_core::access::idempotency::{Answer, Entry, Key, RETENTION, Request};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::nodes::token::SecretHash;
use uuid::Uuid;

use super::{Connection, Row, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;

/// How many expired keys an insert deletes: more than it adds, so that the table
/// shrinks to the keys that are not expired, and few enough to cost nothing.
const SWEPT: i64 = 8;

/// Takes over an expired row of the same key.
pub(crate) async fn insert(connection: &mut Connection, record: &Entry) -> Result<(), Failure> {
    let request = &record.request;
    let lifetime = i64::try_from(RETENTION.as_micros()).unwrap_or(i64::MAX);
    let inserted = sqlx::query(sql!(
        "INSERT INTO idempotency_keys (id, caller, idempotency_key, route, body_hash, \
         subject_id, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, ",
        now,
        ", ",
        now,
        (plus_micros "$7"),
        ") ON CONFLICT (caller, idempotency_key) DO UPDATE SET id = excluded.id, \
         route = excluded.route, body_hash = excluded.body_hash, \
         subject_id = excluded.subject_id, created_at = excluded.created_at, \
         expires_at = excluded.expires_at, answer_status = NULL, answer_location = NULL, \
         answer_etag = NULL, answer_body = NULL WHERE idempotency_keys.expires_at <= ",
        now
    ))
    .bind(record.id)
    .bind(&request.caller)
    .bind(request.key.as_str())
    .bind(&request.route)
    .bind(&request.body_hash.as_bytes()[..])
    .bind(record.subject_id)
    .bind(lifetime)
    .execute(&mut *connection)
    .await?
    .rows_affected();
    writes::one_row(inserted, || {
        Refusal::new(
            ErrorKind::IdempotencyKeyReused,
            "another request with this Idempotency-Key was under way; send it again",
        )
        .at("idempotency-key")
    })?;
    sqlx::query(sql!(
        "DELETE FROM idempotency_keys WHERE id ",
        picked_from,
        "SELECT id FROM idempotency_keys WHERE expires_at <= ",
        now,
        " ORDER BY expires_at LIMIT $1",
        skip_locked,
        picked_end
    ))
    .bind(SWEPT)
    .execute(connection)
    .await?;
    Ok(())
}

pub(crate) async fn find(
    connection: &mut Connection,
    (caller, key): (&str, &str),
) -> Result<Option<AnsweredEntry>, Failure> {
    let row = sqlx::query(sql!(
        "SELECT id, caller, idempotency_key, route, body_hash, subject_id, answer_status, \
         answer_location, answer_etag, answer_body FROM idempotency_keys \
         WHERE caller = $1 AND idempotency_key = $2 AND expires_at > ",
        now
    ))
    .bind(caller)
    .bind(key)
    .fetch_optional(&mut *connection)
    .await?;
    row.map(|row| super::page::hydrate(&row, "id", hydrate_entry)).transpose()
}

fn hydrate_entry(row: &Row) -> Result<AnsweredEntry, Fault> {
    let hash: Vec<u8> = rows::get(row, "body_hash")?;
    let key: String = rows::get(row, "idempotency_key")?;
    let record = Entry {
        id: rows::get(row, "id")?,
        request: Request {
            caller: rows::get(row, "caller")?,
            key: Key::parse(&key)
                .map_err(|refusal| Fault::new("idempotency_key", refusal.message))?,
            route: rows::get(row, "route")?,
            body_hash: SecretHash::from_slice(&hash)
                .ok_or_else(|| Fault::new("body_hash", "must have 32 bytes"))?,
        },
        subject_id: rows::get(row, "subject_id")?,
    };
    Ok(AnsweredEntry { record, answer: hydrate_answer(row)? })
}

fn hydrate_answer(row: &Row) -> Result<Option<Answer>, Fault> {
    let Some(status) = rows::get::<Option<i32>>(row, "answer_status")? else { return Ok(None) };
    Ok(Some(Answer {
        status: u16::try_from(status)
            .map_err(|_| Fault::new("answer_status", "is no HTTP status"))?,
        location: rows::get(row, "answer_location")?,
        etag: rows::get(row, "answer_etag")?,
        body: rows::get::<Option<String>>(row, "answer_body")?.unwrap_or_default(),
    }))
}

/// Stores and reads by one statement. Of two concurrent ones the second waits for
/// the first, finds its answer, and writes that again.
pub(crate) async fn answer(
    connection: &mut Connection,
    (id, answer): (Uuid, &Answer),
) -> Result<Option<Answer>, Failure> {
    let row = sqlx::query(
        "UPDATE idempotency_keys SET answer_status = coalesce(answer_status, $2), \
         answer_location = CASE WHEN answer_status IS NULL THEN $3 ELSE answer_location END, \
         answer_etag = CASE WHEN answer_status IS NULL THEN $4 ELSE answer_etag END, \
         answer_body = CASE WHEN answer_status IS NULL THEN $5 ELSE answer_body END \
         WHERE id = $1 RETURNING id, answer_status, answer_location, answer_etag, answer_body",
    )
    .bind(id)
    .bind(i32::from(answer.status))
    .bind(answer.location.as_deref())
    .bind(answer.etag.as_deref())
    .bind(&answer.body)
    .fetch_optional(&mut *connection)
    .await?;
    let stored = row.map(|row| super::page::hydrate(&row, "id", hydrate_answer)).transpose()?;
    Ok(stored.flatten())
}
