//! Deletions: 204, and where the record is.

use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse as _, Response};
use slipway_core::ids::DeletionId;

/// The options of a deletion that its query may have.
pub(super) const OPTIONS: &[&str] = &["reason", "grace", "plan", "break_glass"];

pub(super) fn answer(id: DeletionId) -> Response {
    let location = format!("/api/v1/deletions/{id}");
    (StatusCode::NO_CONTENT, [(LOCATION, location)]).into_response()
}
