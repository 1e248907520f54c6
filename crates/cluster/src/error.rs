//! Classifies the refusals of an API server: a reason to decide on, and a message
//! that tells a person what was tried, what came of it and what helps.

use std::io;
use std::time::Duration;

use kube::core::Status;

/// Time limit of every request. Longer than an API server under load takes, and
/// short enough that an action, which has a third of its lease (ten seconds by
/// default), ends with this error and not without one, also after it waited for
/// the first list of a kind.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
#[error("no answer within {ANSWER_TIMEOUT:?}")]
struct NoAnswer;

/// Why a request failed. Its text carries no credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    reason: Reason,
    message: String,
}

/// The refusals that mean something to a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The server did not answer; another request now would be in vain. A write
    /// may still take effect.
    NoAnswer,
    /// Nothing accepts connections there, so nothing was sent.
    NotSent,
    /// Nothing is at this path; a group at this path is not served. This proves
    /// nothing about an object.
    NotFound,
    /// The object is not the one that was read, or was written since.
    Conflict,
    /// Other managers own these fields of an apply.
    FieldConflict(Vec<String>),
    /// The server does not accept the credentials.
    Unauthorized,
    /// The role of the account does not allow it.
    Forbidden,
    /// The server says that it, or etcd behind it, cannot answer now.
    Unavailable,
    /// Every other refusal.
    Refused,
    /// The caller's own permit for the request was not given; it was not sent.
    Withheld,
}

impl Error {
    /// The error of a request that its sender does not permit now.
    pub fn withheld(message: impl Into<String>) -> Self {
        Self { reason: Reason::Withheld, message: message.into() }
    }

    /// The error of a request that never reached the server.
    pub fn no_answer(message: impl Into<String>) -> Self {
        Self { reason: Reason::NoAnswer, message: message.into() }
    }

    /// The error of an answer that makes no sense, or contradicts what is known.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { reason: Reason::Refused, message: message.into() }
    }

    /// Classifies the error of the attempt to do `what`.
    pub(crate) fn classify(what: &str, error: &kube::Error) -> Self {
        Self { reason: reason(error), message: describe(what, error) }
    }

    pub const fn reason(&self) -> &Reason {
        &self.reason
    }

    pub fn into_message(self) -> String {
        self.message
    }

    /// The object differs from what the request named, by its uid, its version or
    /// the owners of its fields.
    pub const fn is_conflict(&self) -> bool {
        matches!(self.reason, Reason::Conflict | Reason::FieldConflict(_))
    }

    pub const fn is_no_answer(&self) -> bool {
        matches!(self.reason, Reason::NoAnswer | Reason::NotSent)
    }

    /// Whether a write may have taken effect, or may still do so.
    pub const fn may_land(&self) -> bool {
        matches!(self.reason, Reason::NoAnswer)
    }

    /// The cluster as a whole does not serve us, whatever the request was.
    pub const fn is_outage(&self) -> bool {
        self.is_no_answer() || matches!(self.reason, Reason::Unauthorized | Reason::Unavailable)
    }

    pub const fn is_forbidden(&self) -> bool {
        matches!(self.reason, Reason::Forbidden)
    }

    /// The same refusal with a hint about what helps.
    #[must_use]
    pub fn with_hint(mut self, hint: &str) -> Self {
        self.message.push_str(hint);
        self
    }
}

/// The answer, or an error if there was none in time: a connection whose other
/// end is gone stays open without any sign of it.
pub(crate) async fn within<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    match tokio::time::timeout(ANSWER_TIMEOUT, request).await {
        Ok(answer) => answer,
        Err(_) => Err(kube::Error::Service(Box::new(NoAnswer))),
    }
}

/// Whether a server that knows the kind has answered that the object is absent. A
/// server that does not know the kind answers 404 as well, which proves nothing.
pub(crate) fn is_gone(error: &kube::Error, plural: &str, name: &str) -> bool {
    status(error).is_some_and(|status| {
        let details = status.details.as_ref();
        status.code == 404
            && status.reason == "NotFound"
            && details.is_some_and(|details| details.kind == plural && details.name == name)
    })
}

fn reason(error: &kube::Error) -> Reason {
    let Some(status) = status(error) else {
        return if is_refused_connection(error) { Reason::NotSent } else { Reason::NoAnswer };
    };
    match status.code {
        401 => Reason::Unauthorized,
        403 if by_role(status) => Reason::Forbidden,
        404 => Reason::NotFound,
        // Somebody on the way, or the server itself, did not wait for the end.
        502 | 504 => Reason::NoAnswer,
        409 => match conflicting_fields(status) {
            fields if fields.is_empty() => Reason::Conflict,
            fields => Reason::FieldConflict(fields),
        },
        503 => Reason::Unavailable,
        _ => Reason::Refused,
    }
}

fn conflicting_fields(status: &Status) -> Vec<String> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let conflicts = causes.filter(|cause| cause.reason == "FieldManagerConflict");
    conflicts.map(|cause| cause.field.clone()).collect()
}

/// Whether a 403 is about the role: the account `cannot` do that, or would grant
/// rights that it does not have itself. A terminating namespace, a quota and a
/// webhook answer 403 as well, and no role helps against those.
fn by_role(status: &Status) -> bool {
    let text = &status.message;
    text.contains(" cannot ") || text.contains("attempting to grant RBAC permissions")
}

fn status(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

fn about(status: &Status, plural: &str) -> bool {
    status.details.as_ref().is_some_and(|details| details.kind == plural)
}

fn describe(what: &str, error: &kube::Error) -> String {
    let Some(status) = status(error) else {
        return format!("could not {what}: the API server does not answer: {}", root(error));
    };
    let message = status.message.trim();
    match status.code {
        401 => format!(
            "could not {what}: the API server does not accept our credentials; renew the kubeconfig or the account's token"
        ),
        403 if by_role(status) => {
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

/// The innermost cause, which is the informative one.
fn root(error: &kube::Error) -> &(dyn std::error::Error + 'static) {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause
}

fn is_refused_connection(error: &kube::Error) -> bool {
    let cause = root(error).downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use kube::core::response::{StatusCause, StatusDetails};

    use super::*;

    fn refusal(code: u16, reason: &str, details: Option<StatusDetails>) -> kube::Error {
        let mut status = Status::failure("the message", reason).with_code(code);
        status.details = details;
        kube::Error::Api(status.boxed())
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
        let gone = |error: &kube::Error| is_gone(error, "nodes", "a");
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
        let managers = Error::classify("apply x", &managers);
        let fields = vec![".spec.parameters.size".to_owned()];
        assert_eq!(managers.reason(), &Reason::FieldConflict(fields));
        let versions = refusal(409, "Conflict", Some(details("", "", vec![])));
        let versions = Error::classify("apply x", &versions);
        assert_eq!(versions.reason(), &Reason::Conflict);
        assert!(versions.is_conflict() && managers.is_conflict());
    }

    #[test]
    fn a_request_that_was_not_waited_for_is_not_answered() {
        let reason = |code| Error::classify("apply x", &refusal(code, "R", None)).reason;
        assert_eq!([reason(502), reason(504)], [Reason::NoAnswer, Reason::NoAnswer]);
        let broken = |kind: io::ErrorKind| {
            Error::classify("x", &kube::Error::Service(Box::new(io::Error::from(kind))))
        };
        let refused = broken(io::ErrorKind::ConnectionRefused);
        assert!(refused.is_no_answer() && refused.is_outage() && !refused.may_land());
        let cut = broken(io::ErrorKind::ConnectionReset);
        assert!(cut.is_no_answer() && cut.is_outage() && cut.may_land());
        assert_eq!([reason(500), reason(503)], [Reason::Refused, Reason::Unavailable]);
    }

    #[test]
    fn every_refusal_says_what_was_tried() {
        for code in [400, 401, 403, 404, 409, 422, 429, 500, 503] {
            let text = Error::classify("delete x", &refusal(code, "R", None)).to_string();
            assert!(text.starts_with("could not delete x: "), "{text}");
        }
    }
}
