//! Idempotency keys: a create that is sent twice happens once.
//!
//! The key is bound in the transaction that creates, so neither exists without
//! the other, and a crash leaves nothing to clean up. (Rejected: an "in
//! progress" row with a lease, written first. After a crash one would have to
//! guess whether the create happened.) A refused request binds nothing. The
//! answer is stored after the commit; if a crash prevented that, it is rebuilt
//! from what was created.

use std::time::Duration;

use uuid::Uuid;

use crate::error::{ErrorKind, Refusal};
use crate::nodes::token::SecretHash;

/// How long a key is remembered. Clients retry for minutes; a day covers a
/// night's outage of theirs.
pub const RETENTION: Duration = Duration::from_secs(24 * 3_600);

/// A request that was sent with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub caller: String,
    pub key: Key,
    /// Method and path.
    pub route: String,
    pub body_hash: SecretHash,
}

/// The text of the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let printable = |c: char| c.is_ascii_graphic() || c == ' ';
        if (1..=255).contains(&text.len()) && text.chars().all(printable) {
            return Ok(Self(text.to_owned()));
        }
        let problem = "must be 1 to 255 printable ASCII characters, such as a UUID";
        Err(Refusal::invalid("idempotency-key", problem))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A key that is bound to its request and to what was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: Uuid,
    pub request: Request,
    /// What was created.
    pub subject_id: Uuid,
}

/// The answer to the first request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub location: Option<String>,
    pub etag: Option<String>,
    pub body: String,
}

impl Entry {
    /// Accepts only the same request again. Another request under the same key
    /// is a mistake of the caller; the first answer would hide it.
    pub fn check(&self, again: &Request) -> Result<(), Refusal> {
        if self.request == *again {
            return Ok(());
        }
        Err(Refusal::new(
            ErrorKind::IdempotencyKeyReused,
            format!(
                "Idempotency-Key `{}` was used for another request; draw a new key for a new request",
                again.key.as_str()
            ),
        )
        .at("idempotency-key"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(route: &str, body: &[u8]) -> Request {
        Request {
            caller: "admin".to_owned(),
            key: Key::parse("k-1").unwrap(),
            route: route.to_owned(),
            body_hash: SecretHash::of(body),
        }
    }

    #[test]
    fn a_key_belongs_to_one_request() {
        let first = request("POST /a", b"1");
        let record = Entry { id: Uuid::nil(), request: first.clone(), subject_id: Uuid::nil() };
        assert!(record.check(&first).is_ok());
        for other in [request("POST /b", b"1"), request("POST /a", b"2")] {
            let refusal = record.check(&other).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::IdempotencyKeyReused);
        }
    }

    #[test]
    fn a_key_is_printable_and_short() {
        for bad in ["", "a\n", "é", &"x".repeat(256)] {
            assert!(Key::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Key::parse("0192f0c1 x").is_ok());
    }
}
