//! What an API server's refusal means, in words that lead somewhere, and the
//! few refusals that mean something to the engine.

use std::time::Duration;

use kube::Error;
use kube::core::Status;

/// A question that is not answered by then is taken for lost. Longer than an
/// API server under load takes, and short enough that an action, which has a
/// third of its lease (ten seconds by default), ends with this error and not
/// without one, also after it waited for the first list of a kind.
const ANSWER: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
#[error("no answer within {ANSWER:?}")]
struct NoAnswer;

/// The answer, or the error that there was none in time: a connection whose
/// other end is gone stays open, and nobody says so.
pub(super) async fn within<T>(
    question: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(ANSWER, question).await {
        Ok(answer) => answer,
        Err(_) => Err(Error::Service(Box::new(NoAnswer))),
    }
}

/// The object is not there, said by a server that knows its kind. A server that
/// does not know the kind answers 404 as well, and that proves nothing.
pub(super) fn is_gone(error: &Error, plural: &str, name: &str) -> bool {
    status(error).is_some_and(|status| {
        let details = status.details.as_ref();
        status.code == 404
            && status.reason == "NotFound"
            && details.is_some_and(|details| details.kind == plural && details.name == name)
    })
}

/// There is nothing at that path: for the path of a group, it is not served.
pub(super) fn is_not_found(error: &Error) -> bool {
    status(error).is_some_and(|status| status.code == 404)
}

/// Fields that other managers hold, if that is why an apply was refused.
pub(super) fn conflicting_fields(error: &Error) -> Option<Vec<String>> {
    let details = status(error).filter(|status| status.code == 409)?.details.as_ref()?;
    let conflicts = details.causes.iter().filter(|cause| cause.reason == "FieldManagerConflict");
    let fields: Vec<_> = conflicts.map(|cause| cause.field.clone()).collect();
    (!fields.is_empty()).then_some(fields)
}

/// It is not the object that was read, or it was written since.
pub(super) fn is_conflict(error: &Error) -> bool {
    status(error).is_some_and(|status| status.code == 409)
}

/// Whether the server answered at all. If not, asking it for more is in vain.
pub(super) fn is_silence(error: &Error) -> bool {
    status(error).is_none()
}

pub(super) fn is_unauthorized(error: &Error) -> bool {
    status(error).is_some_and(|status| status.code == 401)
}

/// The account has no right to it, by its role and not for another reason: it
/// `cannot` do that, or would give away rights that it does not have itself.
pub(super) fn is_forbidden(error: &Error) -> bool {
    let by_role = |text: &str| {
        text.contains(" cannot ") || text.contains("attempting to grant RBAC permissions")
    };
    status(error).is_some_and(|status| status.code == 403 && by_role(&status.message))
}

fn status(error: &Error) -> Option<&Status> {
    match error {
        Error::Api(status) => Some(status),
        _ => None,
    }
}

fn about(status: &Status, plural: &str) -> bool {
    status.details.as_ref().is_some_and(|details| details.kind == plural)
}

/// The error for people: what was tried, what came of it, what helps.
pub(super) fn describe(what: &str, error: &Error) -> String {
    let Some(status) = status(error) else {
        return format!("could not {what}: the API server does not answer: {}", root(error));
    };
    let message = status.message.trim();
    match status.code {
        401 => format!(
            "could not {what}: the API server does not accept our credentials; renew the kubeconfig or the account's token"
        ),
        // An account without the right is told `User "…" cannot …`. A namespace
        // that is going, a quota and a webhook answer 403 as well, and no role
        // helps against those.
        403 if is_forbidden(error) => {
            format!("could not {what}: {message}; grant it to our account, see deploy/")
        }
        403 => format!("could not {what}: the cluster does not admit it: {message}"),
        404 if about(status, "namespaces") => {
            format!("could not {what}: the namespace is not there: {message}")
        }
        404 => format!(
            "could not {what}: the API server does not know this kind, so nothing is proven about the object: {message}"
        ),
        429 => format!("could not {what}: the API server has too much to do: {message}"),
        code @ 500.. => format!("could not {what}: the API server failed with {code}: {message}"),
        code => format!("could not {what}: the API server refused with {code}: {message}"),
    }
}

/// The innermost cause, which is the one that says something.
fn root(error: &Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use kube::core::response::{StatusCause, StatusDetails};

    use super::*;

    fn refusal(code: u16, reason: &str, details: Option<StatusDetails>) -> Error {
        let mut status = Status::failure("the message", reason).with_code(code);
        status.details = details;
        Error::Api(status.boxed())
    }

    fn details(kind: &str, name: &str, causes: Vec<StatusCause>) -> StatusDetails {
        StatusDetails {
            name: name.to_owned(),
            kind: kind.to_owned(),
            group: String::new(),
            uid: String::new(),
            retry_after_seconds: 0,
            causes,
        }
    }

    #[test]
    fn only_a_named_object_of_a_known_kind_is_gone() {
        let gone = |error: &Error| is_gone(error, "nodes", "a");
        assert!(gone(&refusal(404, "NotFound", Some(details("nodes", "a", vec![])))));
        for other in [
            refusal(404, "NotFound", None),
            refusal(404, "Failed to parse error data", None),
            refusal(404, "NotFound", Some(details("nodes", "b", vec![]))),
            refusal(404, "NotFound", Some(details("namespaces", "a", vec![]))),
            refusal(403, "Forbidden", Some(details("nodes", "a", vec![]))),
        ] {
            assert!(!gone(&other), "{other}");
        }
    }

    #[test]
    fn a_conflict_of_managers_is_told_from_a_conflict_of_versions() {
        let cause = StatusCause {
            reason: "FieldManagerConflict".to_owned(),
            message: String::new(),
            field: ".spec.parameters.size".to_owned(),
        };
        let managers = refusal(409, "Conflict", Some(details("", "", vec![cause])));
        assert_eq!(conflicting_fields(&managers).unwrap(), [".spec.parameters.size"]);
        let versions = refusal(409, "Conflict", Some(details("", "", vec![])));
        assert_eq!(conflicting_fields(&versions), None);
        assert!(is_conflict(&versions));
    }

    #[test]
    fn every_refusal_says_what_was_tried() {
        for code in [400, 401, 403, 404, 409, 422, 429, 500, 503] {
            let text = describe("delete x", &refusal(code, "R", None));
            assert!(text.starts_with("could not delete x: "), "{text}");
        }
    }
}
