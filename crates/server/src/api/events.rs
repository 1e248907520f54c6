//! Events: the lifecycle in the order of its positions. The cursor is a
//! position, so a reader that remembers the last one misses nothing.

use axum::extract::State;
use axum::response::Response;
use slipway_app::ports::store::Page;
use slipway_app::usecases::read;
use slipway_wire::api::Event;

use super::convert;
use super::list::{cursor_after, page};
use crate::error::Rejection;
use crate::extract::Authenticated;
use crate::query::Parameters;
use crate::state::ServerState;

pub(super) async fn list(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<i64> = parameters.take_page()?;
    parameters.finish()?;
    let events = read::events(&state.context, &caller, wanted).await?;
    let next = cursor_after(&events, wanted.limit, |event| event.position.to_string());
    let items = events.into_iter().map(convert::event).collect();
    Ok(page::<Event>(items, "/api/v1/events", wanted.limit, &[], next))
}
