//! Renews the claims of a whole batch by one statement.
//!
//! It names the claim token, so that a worker that was replaced renews nothing,
//! and the holder, because a release leaves the token as it is. The model in
//! `slipway_durable` shows what breaks without either.

use std::time::Duration;

use serde_json::json;
use slipway_app::broker::port::Claimed;
use slipway_core::commit::Recheck;
use slipway_core::ids::ProvisionedResourceId;
use sqlx::Row as _;
use sqlx::types::Json;

use super::{Connection, commit};
use crate::failure::Failure;

/// Skips locked rows: the writer may be the record of this very batch, which
/// locks them in an order of its own, so waiting for it could deadlock.
pub(crate) async fn renew(
    connection: &mut Connection,
    (worker, claims, lease): (&str, &[Claimed], Duration),
) -> Result<Vec<ProvisionedResourceId>, Failure> {
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let given: Vec<_> = claims
        .iter()
        .map(|claimed| json!({ "id": claimed.id, "claim_token": claimed.claim_token.0 }))
        .collect();
    let renewed = sqlx::query(concat!(
        "UPDATE provisioned_resources SET lease_until = ",
        sql!(now, (plus_micros "$2"), ", due_at = ", now, (plus_micros "$2")),
        " WHERE id ",
        sql!(picked_from),
        "SELECT held.id FROM provisioned_resources AS held, ",
        rows_from_json!(id: uuid, claim_token: bigint),
        " WHERE held.id = given.id AND held.claim_token = given.claim_token \
         AND held.claimed_by = $3 ORDER BY held.id",
        sql!(skip_locked, picked_end, " RETURNING id"),
    ))
    .bind(Json(given))
    .bind(commit::recheck_micros(Recheck::After(lease)))
    .bind(worker)
    .fetch_all(&mut *connection)
    .await?;
    renewed.iter().map(|row| Ok(ProvisionedResourceId::new(row.try_get("id")?))).collect()
}
