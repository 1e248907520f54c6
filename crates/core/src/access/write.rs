//! What decisions about access write.

use crate::access::api_key::ApiKey;
use crate::access::idempotency;
use crate::nodes::token::SecretHash;

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub enum AccessWrite {
    ApiKeyInsert(ApiKey),
    ApiKeyUpdate(ApiKey),
    /// Remembers for ever that this text was taken away from a key.
    HashWithdraw(SecretHash),
    /// Binds the caller's key to what this commit creates. Fails the commit if
    /// the key is bound already.
    IdempotencyInsert(idempotency::Entry),
}
