//! The guard before every handler: it authenticates the caller, limits their
//! rate, and admits them by the operation of the row. It runs before path
//! parameters, query and body are read, so that a refusal reveals nothing to
//! callers who may not ask.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use slipway_app::access::authenticate;
use slipway_app::access::authorise::{Caller, admit};
use slipway_core::secret::Secret;

use super::row::Route;
use crate::correlation::CorrelationId;
use crate::error::{self, Rejection};
use crate::request::bearer;
use crate::serve::count_for_key;
use crate::state::ServerState;

/// A row, and the state to check a caller against it.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    pub(crate) state: ServerState,
    pub(crate) route: &'static Route,
}

/// A caller admitted by the guard of this row.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    pub(crate) caller: Caller,
    pub(crate) route: &'static Route,
}

pub(crate) async fn guard(
    State(guard): State<Guard>,
    mut request: Request,
    next: Next,
) -> Response {
    let correlation_id = request.extensions().get::<CorrelationId>().map(|id| id.0.clone());
    // A request without a key is authenticated with an empty one, so that the
    // answer is the same as for a wrong key.
    let key = Secret::new(bearer(request.headers()).unwrap_or_default());
    match guard.admit(&key, &correlation_id.unwrap_or_default()).await {
        Ok(admitted) => {
            if let Err(refusal) = count_for_key(&request, admitted.caller.key_id) {
                return Rejection::from(refusal).into_response();
            }
            request.extensions_mut().insert(admitted);
            let answer = next.run(request).await;
            if guard.route.is_in_fleet { error::compatible(answer) } else { answer }
        }
        Err(rejection) => rejection.into_response(),
    }
}

impl Guard {
    async fn admit(&self, key: &Secret, correlation_id: &str) -> Result<Admitted, Rejection> {
        let context = &self.state.context;
        let caller = authenticate::api_key(context, key.expose(), correlation_id).await?;
        if let Some(key) = caller.key_id {
            self.state.key_rates.take(key)?;
        }
        admit(&caller, self.route.operation)?;
        Ok(Admitted { caller, route: self.route })
    }
}
