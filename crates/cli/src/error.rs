//! Why a command failed, how the error is shown, and its exit code.

use std::fmt::Write;
use std::time::Duration;

use serde_json::json;
use slipway_wire::problem::{FieldError, Problem};

use crate::arguments::Output;
use crate::exit::Exit;
use crate::terminal::clean;

/// The one error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server refused.
    #[error("{}", .0.message)]
    Problem(Box<Problem>),
    #[error("cannot reach {server}: {reason}")]
    Unreachable { server: String, reason: String },
    #[error("the answer of {server} is not understood: {reason}")]
    Unreadable { server: String, reason: String },
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    NotFound(String),
    #[error("nothing was done")]
    Declined,
    #[error("`{handle}` is still {phase} after {waited:?}; the server goes on with it")]
    TimedOut { handle: String, phase: String, waited: Duration },
    #[error(
        "{waiting} of the replicas still finish an action after {waited:?}; the freeze is in force"
    )]
    Unsettled { waiting: usize, waited: Duration },
    #[error("`{handle}` ended in Failed: {reason}")]
    EndedInFailed { handle: String, reason: String },
    #[error("`{handle}` is being deleted and will not become Ready")]
    BeingDeleted { handle: String },
    #[error("the {title} is {state}: {why}")]
    RolloutStopped { name: String, title: String, state: String, why: String },
    #[error("the {title} is still {state} after {waited:?}; the server goes on with it")]
    RolloutUnfinished { name: String, title: String, state: String, waited: Duration },
    #[error("the job of tenant `{name}` failed: {reason}")]
    TenantFailed { name: String, reason: String },
    #[error("tenant `{name}` is still {state} after {waited:?}; the server goes on with it")]
    TenantUnfinished { name: String, state: String, waited: Duration },
    #[error("{what} is still {state} after {waited:?}; the server goes on with it")]
    Unfinished { what: String, state: String, waited: Duration, see: String },
    /// Somebody ended what was waited for.
    #[error("{what} was {state}")]
    Ended { what: String, state: String },
    /// The command succeeded; only its result could not be written.
    #[error("the result cannot be written: {0}")]
    Output(std::io::Error),
    /// What the user gave is at fault, in one place or several.
    #[error("{message}")]
    Faults { code: &'static str, message: String, errors: Vec<FieldError>, exit: Exit },
    #[error("{0}")]
    Demo(String),
    /// `diff` found something, which it has shown.
    #[error("the files differ from what is there")]
    Differs,
    #[error("interrupted; everything that was started has been ended")]
    Interrupted,
    /// An error of a command whose server or key is from a context.
    #[error("{error}")]
    InContext { error: Box<Error>, hint: String },
}

impl Error {
    /// Names the context in the hint where the context may be at fault.
    pub(crate) fn in_context(self, context: &str) -> Self {
        let hint = match &self {
            Self::Unreachable { .. } => format!(
                "is it running? the context `{context}` names this server; `slipway context list` lists others"
            ),
            Self::Problem(problem) if problem.code == "unauthenticated" => format!(
                "the key of the context `{context}` is not accepted any more; with a new one: slipway login --context {context}"
            ),
            _ => return self,
        };
        Self::InContext { error: Box::new(self), hint }
    }

    /// The error itself.
    fn inner(&self) -> &Self {
        match self {
            Self::InContext { error, .. } => error,
            error => error,
        }
    }

    pub fn exit(&self) -> Exit {
        match self.inner() {
            Self::Problem(problem) => match problem.status {
                401 | 403 => Exit::Unauthenticated,
                404 => Exit::NotFound,
                // A field or a filter names something that is not there.
                _ if problem.code.ends_with("_not_found") => Exit::NotFound,
                _ => Exit::Refused,
            },
            Self::Faults { exit, .. } => *exit,
            Self::Unreachable { .. } => Exit::Unreachable,
            Self::Usage(_) => Exit::Usage,
            Self::NotFound(_) => Exit::NotFound,
            Self::TimedOut { .. }
            | Self::RolloutUnfinished { .. }
            | Self::TenantUnfinished { .. }
            | Self::Unfinished { .. }
            | Self::Unsettled { .. } => Exit::TimedOut,
            Self::EndedInFailed { .. }
            | Self::RolloutStopped { .. }
            | Self::TenantFailed { .. } => Exit::EndedInFailed,
            Self::Unreadable { .. }
            | Self::Declined
            | Self::BeingDeleted { .. }
            | Self::Ended { .. }
            | Self::Output(_)
            | Self::Demo(_)
            | Self::InContext { .. }
            | Self::Differs
            | Self::Interrupted => Exit::Refused,
        }
    }

    /// Whether the same request may succeed in a moment.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Problem(problem) => problem.status == 503,
            _ => false,
        }
    }

    /// Stable, like the server's codes.
    fn code(&self) -> &str {
        match self.inner() {
            Self::Problem(problem) => &problem.code,
            Self::Unreachable { .. } => "unreachable",
            Self::Unreadable { .. } => "unreadable",
            Self::Usage(_) => "usage",
            Self::NotFound(_) => "not_found",
            Self::Declined => "declined",
            Self::TimedOut { .. }
            | Self::RolloutUnfinished { .. }
            | Self::TenantUnfinished { .. }
            | Self::Unfinished { .. }
            | Self::Unsettled { .. } => "timed_out",
            Self::EndedInFailed { .. } | Self::TenantFailed { .. } => "ended_in_failed",
            Self::RolloutStopped { .. } => "rollout_stopped",
            Self::BeingDeleted { .. } => "being_deleted",
            Self::Ended { .. } => "ended",
            Self::Output(_) => "output_failed",
            Self::Faults { code, .. } => code,
            Self::Demo(_) => "demo_failed",
            Self::Differs => "differs",
            // `inner` leaves no error of a context.
            Self::Interrupted | Self::InContext { .. } => "interrupted",
        }
    }

    /// What to try next, if the message does not say it.
    fn hint(&self) -> Option<String> {
        match self {
            Self::InContext { hint, .. } => Some(hint.clone()),
            Self::Unreachable { .. } => Some(
                "is `slipway up` running there? name another server with --server or SLIPWAY_SERVER"
                    .to_owned(),
            ),
            Self::Problem(problem) => match problem.code.as_str() {
                "unauthenticated" => {
                    Some("keep a key with `slipway login`, or give one with SLIPWAY_KEY; `slipway up` shows the first one".to_owned())
                }
                "cursor_expired" => {
                    Some("begin after the oldest position that is left, with --after".to_owned())
                }
                "handle_taken" => Some("choose another handle, or delete the one that has it".to_owned()),
                "unavailable" | "database_read_only" | "database_full" | "internal" => {
                    Some("search the server's log for the correlation id".to_owned())
                }
                _ => None,
            },
            Self::TimedOut { handle, .. } | Self::EndedInFailed { handle, .. } => {
                Some(format!("see why: slipway resource explain {handle}"))
            }
            Self::RolloutStopped { name, .. } | Self::RolloutUnfinished { name, .. } => {
                Some(format!("see why: slipway explain rollout {name}"))
            }
            Self::TenantFailed { name, .. } | Self::TenantUnfinished { name, .. } => {
                Some(format!("see why: slipway tenant explain {name}"))
            }
            Self::Unfinished { see, .. } => Some(format!("see why: slipway {see}")),
            Self::Unsettled { .. } => Some("see which: slipway status".to_owned()),
            Self::Unreadable { .. } => {
                Some("is this a Slipway server, and of a version that this client knows?".to_owned())
            }
            Self::Output(_) => Some("the request itself was carried out".to_owned()),
            _ => None,
        }
    }

    /// The faults of the input.
    fn faults(&self) -> &[FieldError] {
        match self.inner() {
            Self::Problem(problem) => &problem.errors,
            Self::Faults { errors, .. } => errors,
            _ => &[],
        }
    }

    /// The text for standard error, without a line end: for programs the problem of
    /// the server, or a document with as much of it as there is.
    pub fn render(&self, output: Output) -> String {
        if output == Output::Json { self.json() } else { self.text() }
    }

    fn json(&self) -> String {
        let mut document = match self.inner() {
            Self::Problem(problem) => json!(problem),
            _ => json!({
                "code": self.code(), "message": self.to_string(), "errors": self.faults(),
            }),
        };
        if let Some(hint) = self.hint() {
            document["hint"] = json!(hint);
        }
        format!("{document:#}")
    }

    fn text(&self) -> String {
        let faults = self.faults();
        let mut text = format!("error[{}]: ", clean(self.code()));
        match (self.inner(), faults) {
            (Self::Problem(_), [_, _, ..]) => {
                // Writing to a `String` does not fail.
                let _ = write!(text, "{} faults; nothing was done", faults.len());
            }
            _ => text.push_str(&clean(&self.to_string())),
        }
        if let (Self::Problem(problem), [] | [_]) = (self.inner(), faults) {
            let field = problem.details.as_ref().and_then(|details| details["field"].as_str());
            if let Some(field) = field {
                let _ = write!(text, "\n  field: {}", clean(field));
            }
        } else {
            for fault in faults {
                // Most messages begin with the field.
                let message = fault.message.strip_prefix(&format!("`{}` ", fault.field));
                let message = clean(message.unwrap_or(&fault.message));
                let _ = write!(text, "\n  {}: {message}", clean(&fault.field));
            }
        }
        if let Self::Problem(problem) = self.inner()
            && !problem.correlation_id.is_empty()
        {
            let _ = write!(text, "\n  correlation id: {}", clean(&problem.correlation_id));
        }
        if let Some(hint) = self.hint() {
            let _ = write!(text, "\n  hint: {}", clean(&hint));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, code: &str) -> Problem {
        Problem {
            kind: format!("/docs/problems/{code}"),
            title: code.to_owned(),
            status,
            detail: "handle `web-1` is taken".to_owned(),
            instance: "/api/v1/resources".to_owned(),
            code: code.to_owned(),
            message: "handle `web-1` is taken".to_owned(),
            details: Some(json!({ "field": "handle" })),
            errors: Vec::new(),
            correlation_id: "c-1".to_owned(),
        }
    }

    #[test]
    fn a_problem_shows_all_that_helps() {
        insta::assert_snapshot!(Error::Problem(Box::new(problem(409, "handle_taken"))).render(Output::Table), @r"
        error[handle_taken]: handle `web-1` is taken
          field: handle
          correlation id: c-1
          hint: choose another handle, or delete the one that has it
        ");
    }

    #[test]
    fn several_faults_have_a_line_each_and_programs_get_the_problem() {
        let fault = |field: &str, message: &str| FieldError {
            field: field.to_owned(),
            code: "invalid_input".to_owned(),
            message: message.to_owned(),
        };
        let errors = vec![
            fault("handle", "`handle` must be a handle"),
            fault("parameters.size", "parameter `size` must be of type integer"),
        ];
        let several = Problem { errors, ..problem(400, "invalid_input") };
        let error = Error::Problem(Box::new(several.clone()));
        insta::assert_snapshot!(error.render(Output::Table), @r"
        error[invalid_input]: 2 faults; nothing was done
          handle: must be a handle
          parameters.size: parameter `size` must be of type integer
          correlation id: c-1
        ");
        let shown: Problem = serde_json::from_str(&error.render(Output::Json)).unwrap();
        assert_eq!(shown, several);
        let usage: serde_json::Value =
            serde_json::from_str(&Error::Usage("no".to_owned()).render(Output::Json)).unwrap();
        assert_eq!(usage, json!({ "code": "usage", "message": "no", "errors": [] }));
    }

    #[test]
    fn what_a_server_says_cannot_drive_the_terminal() {
        let hostile =
            Problem { message: "a\u{1b}[2Jb\nc".to_owned(), ..problem(400, "invalid_input") };
        let text = Error::Problem(Box::new(hostile)).render(Output::Table);
        assert!(text.starts_with("error[invalid_input]: a [2Jb c\n"), "{text:?}");
    }

    #[test]
    fn statuses_become_exit_codes() {
        for (status, exit) in [
            (400, Exit::Refused),
            (401, Exit::Unauthenticated),
            (403, Exit::Unauthenticated),
            (404, Exit::NotFound),
            (409, Exit::Refused),
            (503, Exit::Refused),
        ] {
            assert_eq!(Error::Problem(Box::new(problem(status, "x"))).exit(), exit, "{status}");
        }
        let named = Error::Problem(Box::new(problem(422, "project_not_found")));
        assert_eq!(named.exit(), Exit::NotFound, "in a field or a filter");
    }
}
