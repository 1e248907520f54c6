//! `If-Match`: the revision that the caller expects to change.

use axum::extract::FromRequestParts;
use axum::http::header::IF_MATCH;
use axum::http::request::Parts;
use slipway_core::error::Refusal;
use slipway_core::ids::Revision;
use slipway_core::precondition::Expected;

use crate::error::Rejection;

/// The header; without one, any revision matches.
#[derive(Debug)]
pub(crate) struct IfMatch(pub(crate) Expected);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Rejection> {
        let mut values = parts.headers.get_all(IF_MATCH).iter();
        let expected = match (values.next(), values.next()) {
            (None, _) => Some(Expected::Any),
            (Some(value), None) => value.to_str().ok().and_then(parse),
            (Some(_), Some(_)) => None,
        };
        Ok(Self(expected.ok_or_else(|| {
            Refusal::invalid("if-match", "must be `*` or one ETag as it was given, such as \"3\"")
        })?))
    }
}

/// Our tags are strong and name one revision; the server never issues a weak
/// one or a list.
fn parse(text: &str) -> Option<Expected> {
    let text = text.trim();
    if text == "*" {
        return Some(Expected::Any);
    }
    let revision = text.strip_prefix('"')?.strip_suffix('"')?.parse().ok()?;
    Some(Expected::Exactly(Revision(revision)))
}

/// The ETag of a revision.
pub(crate) fn etag(revision: i64) -> String {
    format!("\"{revision}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_tags_are_read() {
        assert_eq!(parse("*"), Some(Expected::Any));
        assert_eq!(parse(&etag(7)), Some(Expected::Exactly(Revision(7))));
        for bad in ["", "7", "W/\"7\"", "\"7\", \"8\"", "\"x\"", "\"\""] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
