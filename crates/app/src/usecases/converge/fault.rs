//! Ticks that failed inside us: the store refused, a rule or an engine
//! panicked. Each is shown on its resource and tried again, later each time.

use std::collections::HashMap;

use slipway_core::commit::{Recheck, Release};
use slipway_core::rules::fault;

use super::Batch;
use crate::ports::broker::Claimed;
use crate::ports::store::Error;

/// A tick that failed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub claimed: Claimed,
    /// Those in a row before this one, as far as they are known.
    pub failures: i32,
    pub message: String,
}

impl Batch<'_> {
    /// Writes the faults down and gives the claims back. Where even that fails
    /// the claim is left to the caller, with what to give it back as.
    pub async fn fault(&self, faults: &[Fault]) -> Vec<(Release, Error)> {
        if faults.is_empty() {
            return Vec::new();
        }
        let of: HashMap<_, _> = faults
            .iter()
            .map(|fault| (fault.claimed.id, (fault, self.context.entropy.jitter())))
            .collect();
        let ids: Vec<_> = faults.iter().map(|fault| fault.claimed.id).collect();
        let decided = self
            .context
            .stores
            .broker
            .decide_many(&ids, &mut |current| {
                let id = current.attempt.id();
                let (fault, jitter) = of.get(&id).ok_or_else(|| super::batch::unexpected(id))?;
                super::batch::pure(|| {
                    let claim_token = fault.claimed.claim_token;
                    fault::fault(current, claim_token, &fault.message, self.pace.sweep, *jitter)
                })
            })
            .await;
        let left = |fault: &Fault, jitter| {
            let failures = fault.failures.saturating_add(1);
            let delay = fault::retry_after(failures, self.pace.sweep, jitter);
            let Claimed { id, claim_token } = fault.claimed;
            Release { attempt: id, claim_token, recheck: Recheck::After(delay), failures }
        };
        match decided {
            Ok(decided) => decided
                .into_iter()
                .filter_map(|(id, outcome)| {
                    let (fault, jitter) = of.get(&id)?;
                    // Somebody else has it by now, and sees for himself.
                    let error = outcome.err().filter(|error| !super::batch::overtaken(error))?;
                    Some((left(fault, *jitter), error))
                })
                .collect(),
            Err(error) => {
                let text = error.to_string();
                let lost = |(fault, jitter): &(&Fault, f64)| {
                    (left(fault, *jitter), Error::Unavailable(text.clone()))
                };
                of.values().map(lost).collect()
            }
        }
    }
}
