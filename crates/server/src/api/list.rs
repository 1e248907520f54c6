//! A page of a list: an array, and a `Link` to the next page while there may
//! be one. A page that is not full is the last.

use std::fmt::Write;

use axum::Json;
use axum::http::HeaderValue;
use axum::http::header::LINK;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Answers `items`. `next` is the cursor after them, if the page was full.
pub(super) fn page<T: Serialize>(
    items: Vec<T>,
    path: &str,
    limit: u32,
    filters: &[(&str, Option<&str>)],
    next: Option<String>,
) -> Response {
    let mut response = Json(items).into_response();
    let link = next.and_then(|cursor| {
        let mut target = format!("<{path}?limit={limit}&cursor={}", encode(&cursor));
        for (name, value) in filters {
            if let Some(value) = value {
                // Writing to a text does not fail.
                let _ = write!(target, "&{name}={}", encode(value));
            }
        }
        HeaderValue::from_str(&format!("{target}>; rel=\"next\"")).ok()
    });
    if let Some(link) = link {
        response.headers_mut().insert(LINK, link);
    }
    response
}

/// The cursor of the next page: that of the last item, if the page was full.
pub(super) fn cursor_after<T>(
    items: &[T],
    limit: u32,
    cursor: impl Fn(&T) -> String,
) -> Option<String> {
    let full = items.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    items.last().filter(|_| full).map(cursor)
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
    use super::*;

    #[test]
    fn a_full_page_links_to_the_next_with_its_filters() {
        let items = vec![1, 2];
        let next = cursor_after(&items, 2, ToString::to_string);
        let response = page(items, "/api/v1/x", 2, &[("a", Some("b c&d")), ("e", None)], next);
        let expected = "</api/v1/x?limit=2&cursor=2&a=b%20c%26d>; rel=\"next\"";
        assert_eq!(response.headers()[LINK], expected);
    }

    #[test]
    fn a_page_that_is_not_full_is_the_last() {
        let items = vec![1];
        let next = cursor_after(&items, 2, ToString::to_string);
        assert!(!page(items, "/x", 2, &[], next).headers().contains_key(LINK));
    }
}
