//! Maps refusals to HTTP: the only module that knows the status of each kind.
//! Handlers and extractors answer a [`Rejection`]; a layer of each protocol's
//! router writes the body, because only the layer knows the path and the
//! correlation id. Details for the log alone (statements, paths, host names) do
//! not pass this module.

use std::any::Any;

use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_wire::problem::{FieldError, MEDIA_TYPE, Problem};
use tracing::Level;

use crate::correlation::CorrelationId;
use crate::rate::RETRY_AFTER_SECONDS;

/// Why a request was refused; the layer adds the body.
#[derive(Debug, Clone)]
pub(crate) struct Rejection {
    pub(crate) refusal: Refusal,
    /// For the log only.
    internal: Option<String>,
    /// The store logs a state of the database itself, once.
    is_logged: bool,
}

/// The status of each kind; `in_path` if no field named what is at fault, so that
/// the path did. It has no wildcard arm on purpose: a new kind does not compile
/// until somebody has chosen its status.
pub(crate) const fn status(kind: ErrorKind, in_path: bool) -> StatusCode {
    match kind {
        ErrorKind::InvalidInput | ErrorKind::PublicKeyInvalid => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthenticated | ErrorKind::TokenInvalid => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden
        | ErrorKind::TokenConsumed
        | ErrorKind::TokenExpired
        | ErrorKind::TokenRevoked
        | ErrorKind::ProjectMismatch
        | ErrorKind::KindMismatch
        | ErrorKind::NonceCollision => StatusCode::FORBIDDEN,
        ErrorKind::ResourceNotFound
        | ErrorKind::ProvisionedResourceNotFound
        | ErrorKind::NodeNotFound
        | ErrorKind::DeletionNotFound
        | ErrorKind::LeakNotFound
        | ErrorKind::BlueprintVersionNotFound
        | ErrorKind::LabelNotFound
        | ErrorKind::SubscriptionNotFound
        | ErrorKind::KeyNotFound
        | ErrorKind::TokenNotFound
        | ErrorKind::PlanNotFound
        | ErrorKind::RolloutNotFound
        | ErrorKind::TenantNotFound
        | ErrorKind::WorkspaceNotFound
        | ErrorKind::GroupNotFound
        | ErrorKind::ServerNotFound
        | ErrorKind::TenantJobNotFound
        | ErrorKind::SourceNotFound
        | ErrorKind::DeploymentObjectNotFound
        | ErrorKind::EntryNotFound
        | ErrorKind::RouteNotFound => StatusCode::NOT_FOUND,
        ErrorKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        // A path can address these, and a field can name them.
        ErrorKind::BlueprintNotFound
        | ErrorKind::CloudNotFound
        | ErrorKind::CredentialNotFound
        | ErrorKind::AssignmentNotFound
        | ErrorKind::ProjectNotFound
        | ErrorKind::GeneratorNotFound
        | ErrorKind::StackNotFound
        | ErrorKind::TemplateNotFound
        | ErrorKind::AgentNotFound
        | ErrorKind::TenantProfileNotFound
        | ErrorKind::ClusterNotFound => match in_path {
            true => StatusCode::NOT_FOUND,
            false => StatusCode::UNPROCESSABLE_ENTITY,
        },
        ErrorKind::BlueprintVersionRetired
        | ErrorKind::ParameterSchemaInvalid
        | ErrorKind::XrdInvalid
        | ErrorKind::CompositionInvalid
        | ErrorKind::BlueprintPairInvalid
        | ErrorKind::CredentialNotAssigned
        | ErrorKind::ProviderKindMismatch
        | ErrorKind::EngineNotServed
        | ErrorKind::ParameterValuesInvalid
        | ErrorKind::ParameterImmutable
        | ErrorKind::VersionNeedsReplace
        | ErrorKind::SurgeNotAllowed
        | ErrorKind::PlanMismatch
        | ErrorKind::KeepNotSupported
        | ErrorKind::SecretNotAccepted
        | ErrorKind::TargetGeneratorMismatch
        | ErrorKind::FieldNotSettable
        | ErrorKind::TemplateMismatch
        | ErrorKind::TemplateFailed
        | ErrorKind::TenantProfileInvalid
        | ErrorKind::OwnedByWorkspace
        | ErrorKind::WorkspaceNotEmpty
        | ErrorKind::ControlPlaneImmutable
        | ErrorKind::DeleteLocked
        | ErrorKind::ScaleMinViolation
        | ErrorKind::ScaleMaxViolation
        | ErrorKind::QuorumViolation
        | ErrorKind::LastLoadBalancer
        | ErrorKind::RoleImmutable
        | ErrorKind::HostnamePatternTaken
        | ErrorKind::RegistrationInvalid => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::RevisionStale => StatusCode::PRECONDITION_FAILED,
        ErrorKind::HandleTaken
        | ErrorKind::NameTaken
        | ErrorKind::UniqueViolation
        | ErrorKind::EntryExists
        | ErrorKind::ProjectNotEmpty
        | ErrorKind::TenantProfileInUse
        | ErrorKind::TenantBusy
        | ErrorKind::ReplacementUnderWay
        | ErrorKind::InventoryMismatch
        | ErrorKind::NothingToPause
        | ErrorKind::TenantReady
        | ErrorKind::TenantFailed
        | ErrorKind::CloudInUse
        | ErrorKind::BlueprintInUse
        | ErrorKind::ClusterInUse
        | ErrorKind::CredentialInUse
        | ErrorKind::AssignmentInUse
        | ErrorKind::ClusterAssignmentImmutable
        | ErrorKind::BlueprintVersionExists
        | ErrorKind::ProviderConfigConflict
        | ErrorKind::IdempotencyKeyReused
        | ErrorKind::KeyNotUsable
        | ErrorKind::LastAdminKey
        | ErrorKind::TokenNotRevocable
        | ErrorKind::ClaimLost
        | ErrorKind::NothingToForce
        | ErrorKind::NothingToRetry
        | ErrorKind::NothingToResume
        | ErrorKind::ResourceFailed
        | ErrorKind::SurgeNeedsReady
        | ErrorKind::SurgeUnderWay
        | ErrorKind::NothingToAbort
        | ErrorKind::NothingToReenrol
        | ErrorKind::NothingToConfirm
        | ErrorKind::NotAbandonable
        | ErrorKind::NotOrphanable
        | ErrorKind::LogsUnavailable
        | ErrorKind::NothingToLift
        | ErrorKind::DrainNotRequested
        | ErrorKind::LeakNotGone
        | ErrorKind::LeakNotRemovable
        | ErrorKind::LeakResolved
        | ErrorKind::MeshInUse
        | ErrorKind::Protected
        | ErrorKind::DeletionBrake
        | ErrorKind::ApprovalRequired
        | ErrorKind::SamePerson
        | ErrorKind::NotCancellable
        | ErrorKind::PlanStale
        | ErrorKind::RolloutEnded
        | ErrorKind::RolloutUnderWay
        | ErrorKind::RolloutEmpty
        | ErrorKind::PlanExpired
        | ErrorKind::PlanUsed
        | ErrorKind::NotRestorable
        | ErrorKind::RestoreConflict
        | ErrorKind::SubstrateGone
        | ErrorKind::PurgeWithheld
        | ErrorKind::ProjectLeaving
        | ErrorKind::Leaving
        | ErrorKind::NotEnrolling
        | ErrorKind::FieldConflict
        | ErrorKind::FieldImmutable
        | ErrorKind::DependencyFailed
        | ErrorKind::DocumentDuplicate
        | ErrorKind::PublicKeyTaken
        | ErrorKind::NamespaceNotReady
        | ErrorKind::NodeDeregistrationFailed
        | ErrorKind::RowInvalid => StatusCode::CONFLICT,
        ErrorKind::CursorExpired => StatusCode::GONE,
        ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::EncodingUnsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorKind::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        ErrorKind::Unavailable
        | ErrorKind::InventoryUnavailable
        | ErrorKind::DatabaseReadOnly
        | ErrorKind::DatabaseFull
        | ErrorKind::PoolExhausted => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::NotOffered => StatusCode::NOT_IMPLEMENTED,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl Rejection {
    pub(crate) fn status(&self) -> StatusCode {
        status(self.refusal.kind, self.refusal.field.is_none())
    }

    /// The seconds to wait, if the refusal has them.
    fn retry_after(&self) -> Option<u64> {
        self.refusal.details.as_ref()?.get(RETRY_AFTER_SECONDS)?.as_u64()
    }

    /// Writes a log line if a person has to act.
    pub(crate) fn log(&self) {
        let code = self.refusal.kind.code();
        let internal = self.internal.as_deref();
        match self.level() {
            Some(Level::ERROR) => {
                let internal = internal.unwrap_or("no further text");
                tracing::error!(code, internal, "a request failed");
            }
            Some(Level::DEBUG) => tracing::debug!(code, internal, "the database cannot be used"),
            Some(_) => {
                let internal = internal.unwrap_or(&self.refusal.message);
                tracing::warn!(code, internal, "a request was refused");
            }
            None => {}
        }
    }

    /// ERROR means a fault of this control plane. A mesh without a free address
    /// is none: it is a setting of one project, and its agents keep retrying.
    /// Neither is a limit that was reached, or a database that cannot be used.
    fn level(&self) -> Option<Level> {
        if self.is_logged {
            return Some(Level::DEBUG);
        }
        if matches!(self.refusal.kind, ErrorKind::PoolExhausted | ErrorKind::Unavailable) {
            return Some(Level::WARN);
        }
        if self.status().is_server_error() {
            return Some(Level::ERROR);
        }
        self.internal.as_ref().map(|_| Level::WARN)
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, internal: None, is_logged: false }
    }
}

impl From<slipway_app::Error> for Rejection {
    fn from(error: slipway_app::Error) -> Self {
        let is_logged = error.is_logged();
        Self { refusal: error.refusal, internal: error.internal, is_logged }
    }
}

/// Sets status and headers; the layer of the protocol writes the body.
impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = status.into_response();
        let headers = response.headers_mut();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Some(wait) = self.retry_after().filter(|_| status == StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(RETRY_AFTER, wait.into());
        }
        if status == StatusCode::REQUEST_TIMEOUT {
            // The rest of the body may still arrive; it is not a next request.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The error writer of our own API.
pub(crate) async fn write_problem(request: Request, next: Next) -> Response {
    let instance = request.uri().path().to_owned();
    let correlation_id = request.extensions().get::<CorrelationId>().map(|id| id.0.clone());
    let mut response = next.run(request).await;
    let Some(rejection) = response.extensions_mut().remove::<Rejection>() else {
        return response;
    };
    rejection.log();
    let problem = problem(&rejection, instance, correlation_id.unwrap_or_default());
    write_json(&mut response, MEDIA_TYPE, &problem);
    response
}

/// Fleet's protocol has a code of its own for whatever has to be unique.
pub(crate) fn compatible(mut response: Response) -> Response {
    if let Some(rejection) = response.extensions_mut().get_mut::<Rejection>()
        && matches!(rejection.refusal.kind, ErrorKind::NameTaken | ErrorKind::EntryExists)
    {
        rejection.refusal.kind = ErrorKind::UniqueViolation;
    }
    response
}

fn problem(rejection: &Rejection, instance: String, correlation_id: String) -> Problem {
    let refusal = &rejection.refusal;
    let code = refusal.kind.code();
    Problem {
        kind: format!("/docs/problems/{code}"),
        title: title(code),
        status: rejection.status().as_u16(),
        detail: refusal.message.clone(),
        instance,
        code: code.to_owned(),
        message: refusal.message.clone(),
        details: details(refusal),
        errors: field_errors(refusal),
        correlation_id,
    }
}

/// The faults of the input; none if no field is at fault.
pub(crate) fn field_errors(refusal: &Refusal) -> Vec<FieldError> {
    if refusal.field.is_none() && refusal.others().is_empty() {
        return Vec::new();
    }
    let of = |fault: &Refusal| FieldError {
        field: fault.field.clone().unwrap_or_default(),
        code: fault.kind.code().to_owned(),
        message: fault.message.clone(),
    };
    refusal.faults().map(of).collect()
}

/// The details of the refusal, plus the field at fault.
fn details(refusal: &Refusal) -> Option<Value> {
    let mut details = match &refusal.details {
        Some(Value::Object(details)) => details.clone(),
        Some(other) => Map::from_iter([("details".to_owned(), other.clone())]),
        None => Map::new(),
    };
    if let Some(field) = &refusal.field {
        details.insert("field".to_owned(), Value::String(field.clone()));
    }
    (!details.is_empty()).then_some(Value::Object(details))
}

/// `handle_taken` → `Handle taken`. A title is the same for every problem of a
/// kind, so it is derived from the code.
pub(crate) fn title(code: &str) -> String {
    let mut words = code.replace('_', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

/// Sets the body of an answer and its media type.
pub(crate) fn write_json(
    response: &mut Response,
    media_type: &'static str,
    document: &impl serde::Serialize,
) {
    // Only map keys that are not text could fail here; there are none.
    let body = serde_json::to_vec(document).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    *response.body_mut() = body.into();
}

/// A panic of a handler is answered as an internal error.
#[expect(clippy::needless_pass_by_value, reason = "the layer hands the panic over by value")]
pub(crate) fn on_panic(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
    let rejection = Rejection {
        refusal: Refusal::new(
            ErrorKind::Internal,
            "the control plane failed; its log has the cause under the correlation id",
        ),
        internal: Some(format!("a handler panicked: {text}")),
        is_logged: false,
    };
    rejection.into_response()
}

/// Limits how much of a caller's input an error text repeats.
pub(crate) fn clip(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(128).collect()
}

#[cfg(test)]
mod tests;
