//! The record of a run outside the database: who had which claim when, which
//! actions were in progress, which tokens were sent out. It outlives the lives
//! of the control plane, as the outside world does.
//!
//! Violations are noted where they happen and read at the end; a panic would
//! only become the error of one tick.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use slipway_app::broker::port::Claimed;
use slipway_core::broker::BrokerWrite;
use slipway_core::commit::{Commit, Write};
use slipway_core::ids::{ClaimToken, ProvisionedResourceId};
use slipway_core::secret::Secret;
use uuid::Uuid;

#[derive(Debug, Default)]
pub(super) struct Journal(Mutex<Ledger>);

#[derive(Debug, Default)]
struct Ledger {
    /// The tick in progress on an attempt: its claim, and in which life.
    ticks: HashMap<ProvisionedResourceId, (ClaimToken, usize)>,
    last_claims: HashMap<ProvisionedResourceId, ClaimToken>,
    acting: HashMap<ProvisionedResourceId, &'static str>,
    last_actions: HashMap<ProvisionedResourceId, ClaimToken>,
    tokens: Vec<Secret>,
    violations: Vec<String>,
    /// How the names of the servers of this run begin, if their points are named by them.
    prefix: Option<String>,
    /// The short names of servers, by resource and by attempt.
    servers: HashMap<Uuid, String>,
}

impl Journal {
    pub(super) fn violation(&self, text: String) {
        self.0.lock().unwrap().violations.push(text);
    }

    pub(super) fn violations(&self) -> Vec<String> {
        self.0.lock().unwrap().violations.clone()
    }

    /// Ticks of one attempt do not overlap, and each has a higher claim token.
    pub(super) fn claimed(&self, life: usize, claimed: Claimed) {
        let mut ledger = self.0.lock().unwrap();
        let Claimed { id, claim_token } = claimed;
        if let Some((open, of)) = ledger.ticks.insert(id, (claim_token, life)) {
            let text =
                format!("{id} was claimed as {claim_token:?} while life {of} ticks under {open:?}");
            ledger.violations.push(text);
        }
        let last = ledger.last_claims.insert(id, claim_token);
        if last.is_some_and(|last| last.0 >= claim_token.0) {
            let text = format!("claim {claim_token:?} of {id} came after {last:?}");
            ledger.violations.push(text);
        }
    }

    pub(super) fn released(&self, attempt: ProvisionedResourceId, claim: ClaimToken) {
        let mut ledger = self.0.lock().unwrap();
        if ledger.ticks.get(&attempt).is_some_and(|(open, _)| *open == claim) {
            ledger.ticks.remove(&attempt);
        }
    }

    /// Ends the ticks of a life: it is dead, or its batch is over (a claim that
    /// could not be released then expires).
    pub(super) fn ended(&self, life: usize) {
        self.0.lock().unwrap().ticks.retain(|_, (_, of)| *of != life);
    }

    /// Whether this life has a tick in progress.
    pub(super) fn is_holding(&self, life: usize) -> bool {
        self.0.lock().unwrap().ticks.values().any(|(_, of)| *of == life)
    }

    /// Begins an action; it ends when the returned guard is dropped. Actions
    /// belong to a tick that is in progress in this life, do not overlap, and
    /// never have a lower claim token than an earlier one.
    pub(super) fn act(
        self: &Arc<Self>,
        life: usize,
        attempt: ProvisionedResourceId,
        what: &'static str,
        stamped: Option<ClaimToken>,
    ) -> Acting {
        let mut ledger = self.0.lock().unwrap();
        let mut wrong = Vec::new();
        if let Some(other) = ledger.acting.insert(attempt, what) {
            wrong.push(format!("{what} of {attempt} began during its {other}"));
        }
        match ledger.ticks.get(&attempt).copied() {
            Some((claim, of)) if of == life => {
                if stamped.is_some_and(|stamped| stamped != claim) {
                    wrong.push(format!(
                        "{what} of {attempt} under {claim:?} was stamped {stamped:?}"
                    ));
                }
                let last = ledger.last_actions.insert(attempt, claim);
                if last.is_some_and(|last| last.0 > claim.0) {
                    wrong.push(format!("{what} of {attempt} under {claim:?} came after {last:?}"));
                }
            }
            other => wrong.push(format!("{what} of {attempt} without a claim, but {other:?}")),
        }
        ledger.violations.extend(wrong);
        Acting { journal: Arc::clone(self), attempt }
    }

    /// Notes a token that was sent out, with an object or to a person.
    pub(super) fn injected(&self, token: Secret) {
        let mut ledger = self.0.lock().unwrap();
        if !ledger.tokens.iter().any(|known| known.expose() == token.expose()) {
            ledger.tokens.push(token);
        }
    }

    /// From here on a point of a resource whose handle begins like this is named with the rest
    /// of the handle, so that the points of several servers are told apart.
    pub(super) fn name_servers(&self, prefix: &str) {
        self.0.lock().unwrap().prefix = Some(prefix.to_owned());
    }

    /// Learns the servers and attempts that a commit would make. One that is rolled back makes
    /// none, and its ids never occur again.
    pub(super) fn learn(&self, commit: &Commit) {
        let mut ledger = self.0.lock().unwrap();
        let Some(prefix) = ledger.prefix.clone() else { return };
        for write in &commit.writes {
            match write {
                Write::Broker(BrokerWrite::ResourceInsert(resource)) => {
                    if let Some(rest) = resource.handle.as_str().strip_prefix(&prefix) {
                        ledger.servers.insert(resource.id.as_uuid(), rest.to_owned());
                    }
                }
                Write::Broker(BrokerWrite::AttemptInsert(attempt)) => {
                    let resource = attempt.resource_id().as_uuid();
                    let Some(name) = ledger.servers.get(&resource).cloned() else { continue };
                    let name = match attempt.attempt() {
                        1 => name,
                        number => format!("{name}#{number}"),
                    };
                    ledger.servers.insert(attempt.id().as_uuid(), name);
                }
                _ => {}
            }
        }
    }

    /// The name of the server, if this is the id of one or of its attempt.
    pub(super) fn server(&self, id: Uuid) -> Option<String> {
        self.0.lock().unwrap().servers.get(&id).cloned()
    }

    /// Every token that was ever sent out.
    pub(super) fn tokens(&self) -> Vec<Secret> {
        self.0.lock().unwrap().tokens.clone()
    }
}

/// An action in progress.
#[derive(Debug)]
pub(super) struct Acting {
    journal: Arc<Journal>,
    attempt: ProvisionedResourceId,
}

impl Drop for Acting {
    fn drop(&mut self) {
        self.journal.0.lock().unwrap().acting.remove(&self.attempt);
    }
}
