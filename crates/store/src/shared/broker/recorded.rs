//! A tick's record, split into the columns that its statement writes.
//! `postgres/record.rs` and `sqlite/record.rs` write it, each in its own way.

use serde_json::Value;
use slipway_core::access::audit::AuditEntry;
use slipway_core::broker::attempt::ProvisionedResource;
use slipway_core::commit::{Recorded, Write};
use slipway_core::event::Event;
use slipway_core::{Phase, Timestamp};

use super::commit::recheck_micros;

/// What a record writes, by table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parts<'a> {
    /// The attempt with its new values; none if only the observation is recorded.
    pub(crate) attempt: Option<&'a ProvisionedResource>,
    pub(crate) observed: Option<&'a Value>,
    pub(crate) line: Option<Line<'a>>,
    pub(crate) event: Option<&'a Event>,
    pub(crate) audit: Option<&'a AuditEntry>,
    pub(crate) claim_token: i64,
    /// After how long it is due again; none means "when woken".
    pub(crate) micros: Option<i64>,
    pub(crate) failures: i32,
}

/// A line of history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) at: Timestamp,
    pub(crate) from: Option<Phase>,
    pub(crate) to: Phase,
    pub(crate) why: &'a str,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(record: &'a Recorded) -> Self {
        let commit = record.commit();
        let mut parts =
            Self { event: commit.events.first(), audit: commit.audit.first(), ..Self::default() };
        for write in &commit.writes {
            match write {
                Write::AttemptUpdate(attempt) => parts.attempt = Some(attempt),
                Write::ObservedReplace(_, observed) => parts.observed = Some(observed),
                Write::HistoryAppend { at, from, to, why, .. } => {
                    parts.line = Some(Line { at: *at, from: *from, to: *to, why });
                }
                Write::Release(release) => {
                    parts.claim_token = release.claim_token.0;
                    parts.micros = recheck_micros(release.recheck);
                    parts.failures = release.failures;
                }
                // `Recorded` allows no other write.
                _ => {}
            }
        }
        parts
    }
}
