//! `status.json`: shows people and `observe` what the agent is doing. No decision
//! uses it: the server decides by its registry, the engine by the lock.

use serde::Serialize;

use super::directory::Directory;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Booting,
    Enrolling,
    Refused,
    Active,
    Draining,
    Drained,
}

impl State {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Booting => "booting",
            Self::Enrolling => "enrolling",
            Self::Refused => "refused",
            Self::Active => "active",
            Self::Draining => "draining",
            Self::Drained => "drained",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Status {
    state: State,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_id: Option<String>,
}

#[derive(Debug)]
pub(crate) struct StatusFile<'a> {
    directory: &'a Directory,
    node_id: Option<String>,
    written: Option<Status>,
}

impl<'a> StatusFile<'a> {
    pub(crate) fn new(directory: &'a Directory) -> Self {
        Self { directory, node_id: None, written: None }
    }

    pub(crate) fn name_node(&mut self, node_id: &str) {
        self.node_id = Some(node_id.to_owned());
    }

    /// Writes only changes, so that a quiet node does not touch the disk. A full
    /// disk does not end the node.
    pub(crate) fn publish(&mut self, state: State, message: impl Into<String>) {
        let status = Status { state, message: message.into(), node_id: self.node_id.clone() };
        if self.written.as_ref() == Some(&status) {
            return;
        }
        tracing::info!(state = state.as_str(), node_id = self.node_id, "{}", status.message);
        let written = serde_json::to_vec_pretty(&status)
            .map_err(|error| error.to_string())
            .and_then(|text| {
                self.directory
                    .write_atomically(&self.directory.status(), &text, 0o644)
                    .map_err(|error| error.to_string())
            });
        match written {
            Ok(()) => self.written = Some(status),
            Err(error) => tracing::warn!(error, "the status could not be written"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_one_spelling() {
        for state in [
            State::Booting,
            State::Enrolling,
            State::Refused,
            State::Active,
            State::Draining,
            State::Drained,
        ] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }
}
