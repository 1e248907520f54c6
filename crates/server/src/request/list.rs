//! A page of a list: an array, with a `Link` to the next page while there may
//! be one. A header names rows that are left out because they cannot be read.

use std::fmt::{Display, Write};

use axum::Json;
use axum::http::header::LINK;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use slipway_app::ports::Listed;
use slipway_wire::list::QUARANTINED_ROWS;

/// The answer with what was listed at `path` with these filters.
pub(crate) fn page<'a, T: Serialize, C: Display>(
    listed: Listed<T, C>,
    path: &str,
    limit: u32,
    filters: impl Iterator<Item = (&'a str, &'a str)>,
) -> Response {
    let mut response = Json(listed.items).into_response();
    let link = listed.next.and_then(|cursor| {
        let mut target = format!("<{path}?limit={limit}&cursor={}", encode(&cursor.to_string()));
        for (name, value) in filters {
            // Writing to a `String` does not fail.
            let _ = write!(target, "&{name}={}", encode(value));
        }
        HeaderValue::from_str(&format!("{target}>; rel=\"next\"")).ok()
    });
    if let Some(link) = link {
        response.headers_mut().insert(LINK, link);
    }
    let held: Vec<_> = listed.quarantined.iter().map(ToString::to_string).collect();
    let held = HeaderValue::from_str(&held.join(",")).ok();
    if let Some(held) = held.filter(|held| !held.is_empty()) {
        response.headers_mut().insert(HeaderName::from_static(QUARANTINED_ROWS), held);
    }
    response
}

/// Percent-encodes all but the unreserved characters.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_full_page_links_to_the_next_with_its_filters() {
        let items = Listed::complete(vec![1, 2], 2, |item| *item);
        let response = page(items, "/api/v1/x", 2, [("a", "b c&d")].into_iter());
        let expected = "</api/v1/x?limit=2&cursor=2&a=b%20c%26d>; rel=\"next\"";
        assert_eq!(response.headers()[LINK], expected);
    }

    #[test]
    fn a_page_that_is_not_full_is_the_last() {
        let items = Listed::complete(vec![1], 2, |item| *item);
        assert!(!page(items, "/x", 2, iter::empty()).headers().contains_key(LINK));
    }

    #[test]
    fn a_page_names_what_it_cannot_show() {
        let bad = Uuid::from_u128(1);
        let items = Listed::<i32>::read([(bad, None)], 1);
        let response = page(items, "/x", 1, iter::empty());
        assert_eq!(response.headers()[QUARANTINED_ROWS], bad.to_string());
        let expected = format!("</x?limit=1&cursor={bad}>; rel=\"next\"");
        assert_eq!(response.headers()[LINK], expected, "the list goes on behind it");
    }
}
