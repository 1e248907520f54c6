//! The event log: a sink that appends every event to a file, one JSON document
//! per line, for log collectors.
//!
//! Each event is in the file once and in order, although events may be published
//! twice: under a lock of the file, the sink reads the end of the file and appends
//! only later events. It first removes a line that a crash cut short. The file may
//! be moved away at any time (each publish opens it); only an event that is
//! published twice around that moment can then be in both files.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rustix::fs::{FlockOperation, flock};
use slipway_app::events::port::PositionedEvent;
use slipway_app::events::sink::Error;
use slipway_app::ports::EventSink;
use slipway_server::event_document;
use slipway_wire::events::Event;

/// How much of the end is read: about a thousand events, ten times what can be
/// published twice.
const TAIL: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct EventLog {
    name: String,
    path: PathBuf,
}

impl EventLog {
    /// The path is part of the name: replicas that share the file share the
    /// subscription, and another file has its own and gets all events.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { name: format!("event-log:{}", path.display()), path }
    }
}

#[async_trait]
impl EventSink for EventLog {
    fn name(&self) -> &str {
        &self.name
    }

    async fn publish(&self, events: &[PositionedEvent]) -> Result<(), Error> {
        let path = self.path.clone();
        let events: Vec<_> = events.iter().map(event_document).collect();
        let written = tokio::task::spawn_blocking(move || append(&path, &events)).await;
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(problem)) => Err(Error(format!("{}: {problem}", self.path.display()))),
            Err(error) => Err(Error(format!("{}: {error}", self.path.display()))),
        }
    }
}

fn append(path: &Path, events: &[Event]) -> Result<(), String> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o640)
        .open(path)
        .map_err(|error| format!("cannot be opened: {error}"))?;
    // The kernel releases the lock when the file is closed, also by a crash.
    flock(&file, FlockOperation::LockExclusive).map_err(|error| error.to_string())?;
    let written = written(&mut file)?;
    let last = written.last_key_value().map_or(0, |(position, _)| *position);
    let mut lines = String::new();
    for event in events {
        match written.get(&event.position) {
            Some(id) if *id == event.id => {}
            Some(_) => {
                return Err(format!(
                    "it has another event at position {}; the file belongs to another \
                     database, or to this one before a restore: move it away",
                    event.position
                ));
            }
            None if event.position <= last => {}
            None => {
                // Serialization fails only for keys that are no text, and there are none.
                lines += &serde_json::to_string(event).unwrap_or_default();
                lines.push('\n');
            }
        }
    }
    let write = file.write_all(lines.as_bytes()).and_then(|()| file.sync_data());
    write.map_err(|error| format!("cannot be written: {error}"))
}

/// The last events of the file, by position. Removes an incomplete last line.
fn written(file: &mut File) -> Result<BTreeMap<i64, String>, String> {
    let io = |error: std::io::Error| format!("cannot be read: {error}");
    let length = file.metadata().map_err(io)?.len();
    let begin = length.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(begin)).map_err(io)?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).map_err(io)?;
    let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < tail.len() {
        if begin > 0 && whole == 0 {
            return Err("does not hold lines; move it away".to_owned());
        }
        file.set_len(begin + whole as u64).map_err(io)?;
        tail.truncate(whole);
    }
    let lines = tail.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    // The first line may be incomplete, because the read began inside it.
    lines
        .skip(usize::from(begin > 0))
        .map(|line| {
            let event: Event = serde_json::from_slice(line)
                .map_err(|_| "holds lines that are no events; move it away".to_owned())?;
            Ok((event.position, event.id))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(positions: std::ops::RangeInclusive<i64>) -> Vec<Event> {
        let event = |position| Event {
            abandoned: false,
            resource_id: None,
            handle: None,
            changed: Vec::new(),
            id: format!("id-{position}"),
            position,
            event_type: "broker.ProvisionedResourceReady".to_owned(),
            aggregate_id: "a".to_owned(),
            revision: 1,
            occurred_at: "2026-01-31T12:00:00Z".to_owned(),
            payload: serde_json::json!({ "text": "x".repeat(2_000) }),
        };
        positions.map(event).collect()
    }

    fn positions(path: &Path) -> Vec<i64> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str::<Event>(line).unwrap().position).collect()
    }

    #[test]
    fn what_is_brought_twice_or_late_is_in_the_file_once_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        // Far more than the tail that is read.
        for batch in [1..=700, 1..=700, 601..=800, 5..=9, 801..=1_000, 990..=1_001] {
            append(&path, &events(batch)).unwrap();
        }
        assert_eq!(positions(&path), (1..=1_001).collect::<Vec<_>>());
    }

    #[test]
    fn a_line_that_a_crash_cut_short_is_taken_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        append(&path, &events(1..=3)).unwrap();
        let text = std::fs::read(&path).unwrap();
        for kept in [text.len() - 1, text.len() - 1_000, 10] {
            std::fs::write(&path, &text[..kept]).unwrap();
            append(&path, &events(1..=3)).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), text, "{kept} bytes were left");
        }
    }

    #[test]
    fn somebody_elses_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        std::fs::write(&path, "not ours\n").unwrap();
        assert!(append(&path, &events(1..=1)).unwrap_err().contains("move it away"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "not ours\n");

        std::fs::remove_file(&path).unwrap();
        append(&path, &events(1..=3)).unwrap();
        let mut restored = events(2..=4);
        restored[0].id = "another".to_owned();
        assert!(append(&path, &restored).unwrap_err().contains("position 2"));
        assert_eq!(positions(&path), [1, 2, 3]);
    }
}
