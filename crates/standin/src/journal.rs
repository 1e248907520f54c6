//! The journal of agents: one JSON line per action with its time, in a file
//! that tests read.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use jiff::Timestamp;
use serde::Serialize;

use crate::clock;

/// The file, if there is one.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Option<Mutex<File>>,
}

/// What an agent did.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalEntry {
    /// The machine runs.
    Booted,
    /// The control plane registered the node.
    Registered,
    /// The control plane refused the node.
    Refused,
    /// It finished its work and is about to report that; with its own time.
    Leaving,
    /// It reported that, and the control plane accepted it.
    Drained,
    /// It said good-bye without having been drained.
    Left,
    /// The machine is gone.
    Stopped,
}

#[derive(Serialize)]
struct Line<'a> {
    at: String,
    namespace: &'a str,
    composite: &'a str,
    entry: JournalEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

/// The composite that an entry is about.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) namespace: String,
    pub(crate) composite: String,
}

impl Journal {
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let open = |path: &Path| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .with_context(|| format!("cannot open the journal {}", path.display()))
        };
        Ok(Self { file: path.map(open).transpose()?.map(Mutex::new) })
    }

    pub(crate) fn write(
        &self,
        name: &Name,
        entry: JournalEntry,
        node_id: Option<&str>,
        detail: Option<&str>,
    ) {
        self.write_at(clock::now(), name, entry, node_id, detail);
    }

    /// The same with a time that the agent itself noted.
    pub(crate) fn write_at(
        &self,
        at: Timestamp,
        name: &Name,
        entry: JournalEntry,
        node_id: Option<&str>,
        detail: Option<&str>,
    ) {
        let Name { namespace, composite } = name;
        tracing::debug!(namespace, composite, ?entry, node_id, detail, "an agent");
        let Some(file) = &self.file else { return };
        let line = Line { at: at.to_string(), namespace, composite, entry, node_id, detail };
        // One write per line: others may read the file meanwhile.
        let written =
            serde_json::to_string(&line).map_err(std::io::Error::other).and_then(|line| {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.write_all(format!("{line}\n").as_bytes())
            });
        if let Err(error) = written {
            tracing::error!(%error, "the journal cannot be written");
        }
    }
}
