//! A tick's record, split into the columns that its statement writes.
//! `postgres/record.rs` and `sqlite/record.rs` write it, each in its own way.

use serde_json::Value;
use slipway_core::access::audit::AuditEntry;
use slipway_core::broker::BrokerWrite;
use slipway_core::broker::attempt::ProvisionedResource;
use slipway_core::commit::{Recorded, StateChange, Write};
use slipway_core::event::Event;

use super::commit::recheck_micros;

/// What a record writes, by table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parts<'a> {
    /// The attempt with its new values; none if only the observation is recorded.
    pub(crate) attempt: Option<&'a ProvisionedResource>,
    pub(crate) observed: Option<&'a Value>,
    /// A line of history, or part of the audit entry if there is one. Its time is also
    /// that of the event and the entry, see [`Recorded`].
    pub(crate) change: Option<&'a StateChange>,
    pub(crate) event: Option<&'a Event>,
    pub(crate) audit: Option<&'a AuditEntry>,
    pub(crate) claim_token: i64,
    /// After how long it is due again; none means "when woken".
    pub(crate) micros: Option<i64>,
    pub(crate) failures: i32,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(record: &'a Recorded) -> Self {
        let commit = record.commit();
        let mut parts = Self {
            change: commit.state_changes().next(),
            event: commit.events.first(),
            audit: commit.audit.first(),
            ..Self::default()
        };
        for write in &commit.writes {
            match write {
                Write::Broker(BrokerWrite::AttemptUpdate(attempt)) => parts.attempt = Some(attempt),
                Write::Broker(BrokerWrite::ObservedReplace(_, observed)) => {
                    parts.observed = Some(observed);
                }
                Write::Release(release) => {
                    parts.claim_token = release.claim_token.0;
                    parts.micros = recheck_micros(release.recheck);
                    parts.failures = release.failures;
                }
                // The state change is read above; `Recorded` allows no other write.
                _ => {}
            }
        }
        parts
    }
}
