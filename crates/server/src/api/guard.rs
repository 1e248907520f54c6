//! What stands before every handler: who is calling, whether their role and
//! reach are enough by the row of the table, and whether they ask too often.
//! All of it before path parameters, query and body are looked at, so that
//! nobody learns from our complaints what they may not ask.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use slipway_app::authorise::{Caller, admit};
use slipway_app::usecases::authenticate;
use slipway_core::secret::Secret;

use super::routes::Route;
use crate::correlation::CorrelationId;
use crate::error::Rejection;
use crate::extract::{Authenticated, bearer};
use crate::state::ServerState;

/// A row, and what it takes to check it.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    pub(super) state: ServerState,
    pub(super) route: &'static Route,
}

pub(super) async fn guard(
    State(guard): State<Guard>,
    mut request: Request,
    next: Next,
) -> Response {
    let correlation_id = request.extensions().get::<CorrelationId>().map(|id| id.0.clone());
    // Without a key the look-up is asked with an empty one, so that the answer
    // is the same as for a wrong one.
    let key = Secret::new(bearer(request.headers()).unwrap_or_default());
    match guard.admit(&key, &correlation_id.unwrap_or_default()).await {
        Ok(caller) => {
            request.extensions_mut().insert(Authenticated(caller));
            next.run(request).await
        }
        Err(rejection) => rejection.into_response(),
    }
}

impl Guard {
    async fn admit(&self, key: &Secret, correlation_id: &str) -> Result<Caller, Rejection> {
        let context = &self.state.context;
        let caller = authenticate::api_key(context, key.expose(), correlation_id).await?;
        if let Some(key) = caller.key_id {
            self.state.rates.take(key)?;
        }
        admit(&caller, self.route.least, self.route.scope)?;
        Ok(caller)
    }
}
