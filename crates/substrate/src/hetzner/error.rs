//! Why a call to the provider failed, by the provider's own codes. No text here has the token.

use slipway_app::ports::substrate::Error as Problem;

/// What a failed call means for whoever made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    NotFound,
    /// The token is missing, unreadable or refused.
    Token,
    /// Another object has the name.
    NotUnique,
    Protected,
    /// Another action on the object is running.
    Busy,
    /// No capacity for this type in this location, or no quota for it.
    NoCapacity,
    /// The provider refused because of its rate limit, or we did not ask because of it.
    RateLimited,
    /// The mode of the installation does not permit it; nothing was sent.
    Withheld,
    /// Any other refusal, or nothing was sent.
    Refused,
    /// It was sent and nobody answered, or the provider failed while it worked on it.
    NoAnswer,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct ApiError {
    pub reason: Reason,
    pub message: String,
}

impl ApiError {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// An answer with an error status.
    pub(super) fn answered(call: &str, status: u16, code: &str, message: &str) -> Self {
        let reason = match (code, status) {
            ("not_found", _) => Reason::NotFound,
            ("unauthorized" | "token_readonly", _) | ("" | "forbidden", 401) => Reason::Token,
            ("uniqueness_error", _) => Reason::NotUnique,
            ("protected", _) => Reason::Protected,
            ("locked" | "conflict", _) => Reason::Busy,
            ("resource_unavailable" | "placement_error" | "resource_limit_exceeded", _) => {
                Reason::NoCapacity
            }
            ("rate_limit_exceeded", _) | (_, 429) => Reason::RateLimited,
            // Nothing says whether it was carried out before it failed.
            (_, 500..) => Reason::NoAnswer,
            _ => Reason::Refused,
        };
        let code = if code.is_empty() { "no code" } else { code };
        Self::new(reason, format!("{call}: the provider answered {status} {code}: {message}"))
    }

    /// Whether a request that changes something may still take effect.
    pub(super) fn may_land(&self) -> bool {
        self.reason == Reason::NoAnswer
    }
}

/// The error of a read.
pub(super) fn failed(error: ApiError) -> Problem {
    match error.reason {
        Reason::Withheld => Problem::Withheld,
        Reason::NoCapacity => Problem::NoCapacity(error.message),
        _ => Problem::Failed(error.message),
    }
}

/// The error of a write: one that nobody answered may still take effect.
pub(super) fn not_written(error: ApiError) -> Problem {
    if error.may_land() { Problem::Unanswered(error.message) } else { failed(error) }
}
