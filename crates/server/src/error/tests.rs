//! Every kind of error, one by one, through the real layer.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::middleware::from_fn;
use axum::routing::get;
use serde_json::json;
use slipway_app::ports::store;
use slipway_core::blocker::BlockerCode;
use tower::ServiceExt;

use super::*;

async fn answer_of(rejection: Rejection) -> (Response, Problem) {
    let router = Router::new()
        .route("/thing", get(move || async move { rejection }))
        .layer(from_fn(write_problem));
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = "/thing".parse().unwrap();
    request.extensions_mut().insert(CorrelationId("c-1".to_owned()));
    let response = router.oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, 1 << 20).await.unwrap();
    let problem = serde_json::from_slice(&bytes).unwrap();
    (Response::from_parts(parts, Body::empty()), problem)
}

#[tokio::test]
async fn every_kind_has_a_status_a_code_and_the_media_type() {
    for kind in ErrorKind::ALL {
        let (response, problem) =
            answer_of(Refusal::new(*kind, "what happened").at("x").into()).await;
        assert!(response.status().as_u16() >= 400, "{kind}");
        assert_eq!(response.status(), status(*kind, false), "{kind}");
        assert_eq!(response.headers()[CONTENT_TYPE], MEDIA_TYPE, "{kind}");
        assert_eq!(problem.status, response.status().as_u16(), "{kind}");
        assert_eq!(problem.code, kind.code());
        assert_eq!(problem.kind, format!("/docs/problems/{}", kind.code()));
        assert_eq!(
            (problem.detail.as_str(), problem.message.as_str()),
            ("what happened", "what happened")
        );
        assert_eq!((problem.instance.as_str(), problem.correlation_id.as_str()), ("/thing", "c-1"));
        let retries = response.headers().contains_key(RETRY_AFTER);
        assert_eq!(retries, response.status() == StatusCode::SERVICE_UNAVAILABLE, "{kind}");
        let challenges = response.headers().contains_key(WWW_AUTHENTICATE);
        assert_eq!(challenges, response.status() == StatusCode::UNAUTHORIZED, "{kind}");
    }
}

/// The nine sentinels of the broker's documents, each with its code and its status here.
/// What a field of a body names is 422; the two of the loop are blockers of the same code.
#[test]
fn the_nine_sentinels_have_their_codes_and_statuses() {
    let nine = [
        ("ErrInvalidInput", ErrorKind::InvalidInput, "invalid_input", 400),
        ("ErrBlueprintNotFound", ErrorKind::BlueprintNotFound, "blueprint_not_found", 422),
        ("ErrCloudNotFound", ErrorKind::CloudNotFound, "cloud_not_found", 422),
        ("ErrCredentialNotFound", ErrorKind::CredentialNotFound, "credential_not_found", 422),
        ("ErrAssignmentNotFound", ErrorKind::AssignmentNotFound, "assignment_not_found", 422),
        (
            "ErrParameterValuesInvalid",
            ErrorKind::ParameterValuesInvalid,
            "parameter_values_invalid",
            422,
        ),
        (
            "ErrProvisionedResourceNotFound",
            ErrorKind::ProvisionedResourceNotFound,
            "provisioned_resource_not_found",
            404,
        ),
        ("ErrNamespaceNotReady", ErrorKind::NamespaceNotReady, "namespace_not_ready", 409),
        (
            "ErrNodeDeregistrationFailed",
            ErrorKind::NodeDeregistrationFailed,
            "node_deregistration_failed",
            409,
        ),
    ];
    for (sentinel, kind, code, number) in nine {
        assert_eq!((kind.code(), status(kind, false).as_u16()), (code, number), "{sentinel}");
        // `ErrBlueprintNotFound` is `blueprint_not_found`.
        let mut spelt = String::new();
        for letter in sentinel.trim_start_matches("Err").chars() {
            if letter.is_uppercase() && !spelt.is_empty() {
                spelt.push('_');
            }
            spelt.push(letter.to_ascii_lowercase());
        }
        assert_eq!(spelt, code);
    }
    for code in ["namespace_not_ready", "node_deregistration_failed", "parameter_values_invalid"] {
        assert!(BlockerCode::parse(code).is_some(), "{code} is a blocker too");
    }
}

/// Every code of the node protocol is in `docs/nodes.md`, which agents rely on.
#[test]
fn the_codes_of_the_node_protocol_are_documented_with_their_status() {
    const DOCUMENT: &str = include_str!("../../../../docs/nodes.md");
    let (_, refusals) = DOCUMENT.split_once("## Refusals").unwrap();
    let rows = refusals.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let number: u16 = cells.next()?.parse().ok()?;
        Some((cells.next()?.trim_matches('`').to_owned(), number))
    });
    let documented: BTreeMap<String, u16> = rows.collect();
    let kinds = [
        ErrorKind::InvalidInput,
        ErrorKind::PublicKeyInvalid,
        ErrorKind::TokenInvalid,
        ErrorKind::Unauthenticated,
        ErrorKind::KindMismatch,
        ErrorKind::ProjectMismatch,
        ErrorKind::TokenConsumed,
        ErrorKind::TokenRevoked,
        ErrorKind::TokenExpired,
        ErrorKind::NonceCollision,
        ErrorKind::ResourceNotFound,
        ErrorKind::NodeNotFound,
        ErrorKind::MethodNotAllowed,
        ErrorKind::RequestTimeout,
        ErrorKind::DrainNotRequested,
        ErrorKind::NotEnrolling,
        ErrorKind::PublicKeyTaken,
        ErrorKind::RowInvalid,
        ErrorKind::PayloadTooLarge,
        ErrorKind::EncodingUnsupported,
        ErrorKind::RegistrationInvalid,
        ErrorKind::RateLimited,
        ErrorKind::PoolExhausted,
        ErrorKind::Unavailable,
        ErrorKind::DatabaseReadOnly,
        ErrorKind::DatabaseFull,
        ErrorKind::Internal,
    ];
    let served: BTreeMap<String, u16> =
        kinds.iter().map(|kind| (kind.code().to_owned(), status(*kind, false).as_u16())).collect();
    assert_eq!(documented, served);
}

#[test]
fn the_published_statuses_stay() {
    let table = [
        (ErrorKind::InvalidInput, 400),
        (ErrorKind::Unauthenticated, 401),
        (ErrorKind::TokenConsumed, 403),
        (ErrorKind::ResourceNotFound, 404),
        (ErrorKind::MethodNotAllowed, 405),
        (ErrorKind::RequestTimeout, 408),
        (ErrorKind::HandleTaken, 409),
        (ErrorKind::RevisionStale, 412),
        (ErrorKind::PayloadTooLarge, 413),
        (ErrorKind::EncodingUnsupported, 415),
        (ErrorKind::BlueprintNotFound, 422),
        (ErrorKind::Internal, 500),
        (ErrorKind::Unavailable, 503),
        (ErrorKind::DatabaseReadOnly, 503),
        (ErrorKind::DatabaseFull, 503),
    ];
    for (kind, expected) in table {
        assert_eq!(status(kind, false).as_u16(), expected, "{kind}");
    }
}

#[tokio::test]
async fn the_field_stands_beside_the_details() {
    let refusal = Refusal::invalid("handle", "is too long").with(json!({ "most": 63 }));
    let (_, problem) = answer_of(refusal.into()).await;
    assert_eq!(problem.title, "Invalid input");
    assert_eq!(problem.details, Some(json!({ "field": "handle", "most": 63 })));
    let (_, bare) = answer_of(Refusal::new(ErrorKind::Forbidden, "no").into()).await;
    assert_eq!(bare.details, None);
}

#[tokio::test]
async fn the_caller_does_not_see_the_internal_text() {
    let error = slipway_app::Error {
        refusal: Refusal::new(ErrorKind::Internal, "the control plane failed"),
        internal: Some("SELECT secret FROM t".to_owned()),
    };
    let (_, problem) = answer_of(error.into()).await;
    assert!(!serde_json::to_string(&problem).unwrap().contains("SELECT"));
}

#[tokio::test]
async fn a_panic_is_an_internal_error() {
    let response = on_panic(Box::new("boom"));
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(response.extensions().get::<Rejection>().unwrap().refusal.kind, ErrorKind::Internal);
}

#[test]
fn an_error_line_is_a_fault_of_ours() {
    let level = |kind| Rejection::from(Refusal::new(kind, "x")).level();
    assert_eq!(level(ErrorKind::Internal), Some(Level::ERROR));
    assert_eq!(level(ErrorKind::Unavailable), Some(Level::WARN), "a limit that was reached");
    assert_eq!(level(ErrorKind::PoolExhausted), Some(Level::WARN), "each agent asks every minute");
    assert_eq!(level(ErrorKind::ResourceNotFound), None);
    let error = slipway_app::Error {
        refusal: Refusal::new(ErrorKind::RowInvalid, "x"),
        internal: Some("y".to_owned()),
    };
    assert_eq!(Rejection::from(error).level(), Some(Level::WARN));
    // The store logs these once, when they begin and when they end.
    for state in [
        store::Error::Unavailable("y".to_owned()),
        store::Error::ReadOnly("y".to_owned()),
        store::Error::Full("y".to_owned()),
    ] {
        let rejection = Rejection::from(slipway_app::Error::from(state));
        assert_eq!(rejection.level(), Some(Level::DEBUG), "{rejection:?}");
    }
    let fault = slipway_app::Error::from(store::Error::Internal("y".to_owned()));
    assert_eq!(Rejection::from(fault).level(), Some(Level::ERROR));
}

/// A missing thing is 404 if the path addresses it and 422 if a field names it.
#[test]
fn what_is_addressed_is_404_and_what_is_named_is_422() {
    let references = [
        ErrorKind::BlueprintNotFound,
        ErrorKind::CloudNotFound,
        ErrorKind::CredentialNotFound,
        ErrorKind::AssignmentNotFound,
        ErrorKind::ProjectNotFound,
        ErrorKind::ClusterNotFound,
        ErrorKind::GeneratorNotFound,
        ErrorKind::StackNotFound,
        ErrorKind::TemplateNotFound,
        ErrorKind::AgentNotFound,
        ErrorKind::TenantProfileNotFound,
    ];
    for kind in ErrorKind::ALL {
        let addressed = Rejection::from(Refusal::new(*kind, "x")).status();
        let named = Rejection::from(Refusal::new(*kind, "x").at("field")).status();
        if references.contains(kind) {
            assert_eq!((addressed.as_u16(), named.as_u16()), (404, 422), "{kind}");
        } else {
            assert_eq!(addressed, named, "{kind}");
        }
    }
}
