//! Dispatches each write of access to the function of its table. A decision
//! writes one row, so each is a statement of its own.

use slipway_core::access::AccessWrite;

use super::{Connection, api_keys, idempotency, table, withdrawn_keys};
use crate::failure::Failure;

pub(crate) async fn apply(connection: &mut Connection, write: &AccessWrite) -> Result<(), Failure> {
    match write {
        AccessWrite::ApiKeyInsert(row) => {
            table::insert(connection, &api_keys::INSERT, row, "name").await
        }
        AccessWrite::ApiKeyUpdate(row) => table::update(connection, &api_keys::UPDATE, row).await,
        AccessWrite::HashWithdraw(hash) => withdrawn_keys::insert(connection, hash).await,
        AccessWrite::IdempotencyInsert(row) => idempotency::insert(connection, row).await,
    }
}
