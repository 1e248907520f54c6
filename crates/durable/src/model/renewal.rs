//! Renewal: how a worker whose batch takes longer keeps its claim. It runs
//! beside the tick, so its statement may arrive after anything else that the
//! worker did meanwhile, including a release or a crash.

use super::config::{Config, LeaseStart, RenewalNames, Renewing};
use super::properties::Property;
use super::state::{Due, Name, Renewal, Stage, State, Worker};
use super::transition::Move;

impl Config {
    /// One step of a renewal, or none if it cannot happen in this state.
    pub(super) fn renewal(
        &self,
        state: &mut State,
        name: Name,
        successor: Move,
    ) -> Option<Option<Property>> {
        let index = name.index();
        match (successor, state.renewals[index]) {
            (Move::AskRenewal, None) if self.renews(name) => {
                let claim = state.worker_mut(name).leased_mut()?.claim;
                state.renewals[index] =
                    Some(Renewal { claim, lease: self.times.lease, stage: Stage::Sent });
            }
            (Move::Renew, Some(renewal @ Renewal { stage: Stage::Sent, .. })) => {
                let renewed = self.renew(state, name, renewal);
                // If the worker no longer has the claim, nobody hears the answer.
                let heard = state.worker(name).claim() == Some(renewal.claim);
                state.renewals[index] =
                    (renewed && heard).then_some(Renewal { stage: Stage::Renewed, ..renewal });
            }
            (Move::HearRenewal, Some(renewal @ Renewal { stage: Stage::Renewed, .. })) => {
                state.renewals[index] = None;
                self.hear(state, name, renewal);
            }
            _ => return None,
        }
        Some(None)
    }

    const fn renews(&self, name: Name) -> bool {
        match self.renewing {
            Renewing::Nobody => false,
            Renewing::One => matches!(name, Name::A),
            Renewing::Both => true,
        }
    }

    /// Drops the statements that can change nothing any more: tokens only grow,
    /// so a statement that names an old token never matches its row. States
    /// that behave alike thereby become equal.
    pub(super) fn forget_idle_renewals(&self, state: &mut State) {
        if self.protocol.renewal_names == RenewalNames::RowOnly {
            return;
        }
        let current = state.row.claim_token;
        for renewal in &mut state.renewals {
            *renewal = renewal.filter(|renewal| renewal.claim == current);
        }
    }

    /// The statement. Answers whether it changed the row.
    fn renew(&self, state: &mut State, name: Name, renewal: Renewal) -> bool {
        let row = &mut state.row;
        let current = row.claim_token == renewal.claim;
        let renewed = match self.protocol.renewal_names {
            RenewalNames::LeasedClaim => current && row.claimed_by == Some(name),
            RenewalNames::ClaimToken => current,
            RenewalNames::RowOnly => true,
        };
        if renewed {
            row.lease = Some(self.times.lease);
            row.due = Due::In(self.times.lease);
        }
        renewed
    }

    /// A worker that has moved on to another claim, or will not read its lease
    /// any more, ignores the answer.
    fn hear(&self, state: &mut State, name: Name, renewal: Renewal) {
        let worker = state.worker_mut(name);
        if worker.claim() != Some(renewal.claim)
            || matches!(worker, Worker::Acting { .. } | Worker::Recording { .. })
        {
            return;
        }
        if let Some(held) = worker.leased_mut() {
            held.lease = match self.protocol.renewal_counts_from {
                LeaseStart::BeforeTheStatement => renewal.lease,
                LeaseStart::AfterTheAnswer => self.times.lease,
            };
        }
    }
}
