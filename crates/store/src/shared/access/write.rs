//! Dispatches each write of access to the function of its table. A decision
//! writes one row, so each is a statement of its own.

use slipway_core::access::AccessWrite;

use super::{Connection, api_keys, idempotency};
use crate::failure::Failure;

pub(crate) async fn apply(connection: &mut Connection, write: &AccessWrite) -> Result<(), Failure> {
    match write {
        AccessWrite::ApiKeyInsert(row) => api_keys::insert(connection, row).await,
        AccessWrite::ApiKeyUpdate(row) => api_keys::update(connection, row).await,
        AccessWrite::IdempotencyInsert(row) => idempotency::insert(connection, row).await,
    }
}
