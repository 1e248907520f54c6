//! A tick that failed inside us: nothing is known of the resource that was not
//! known before, so nothing of it changes but a blocker that says so, and the
//! moment of the next try.

use std::time::Duration;

use serde_json::json;

use crate::blocker::{Blocker, BlockerCode, merge};
use crate::commit::{Commit, Recheck, Release, Write};
use crate::error::{ErrorKind, Refusal};
use crate::ids::ClaimToken;
use crate::snapshot::ResourceSnapshot;
use crate::text::storable;

/// How long a resource is left alone after this many failures in a row: from a
/// quarter of a second, doubled each time, up to a sweep, spread over ±25 % so
/// that what failed together does not come back together.
pub fn retry_after(failures: i32, sweep: Duration, jitter: f64) -> Duration {
    const FIRST: Duration = Duration::from_millis(250);
    // 2^16 quarters of a second are four hours, beyond any sweep.
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(0).min(16);
    spread((FIRST * 2_u32.pow(doublings)).min(sweep), jitter)
}

/// Between three and five quarters of it, by `jitter` in 0..1.
pub(crate) fn spread(duration: Duration, jitter: f64) -> Duration {
    duration.mul_f64(0.75 + jitter.clamp(0.0, 1.0) / 2.0)
}

/// Writes the fault down and gives the claim back. Names the claim and not the
/// revision: it says something of the worker, whatever became of the row. The
/// next tick that gets to its record drops the blocker.
pub fn fault(
    snapshot: &ResourceSnapshot,
    claim_token: ClaimToken,
    message: &str,
    sweep: Duration,
    jitter: f64,
) -> Result<Commit, Refusal> {
    let attempt = snapshot.attempt.id();
    if snapshot.claim_token != claim_token {
        return Err(Refusal::new(
            ErrorKind::ClaimLost,
            format!("another worker claimed {attempt} meanwhile; this one lets go"),
        ));
    }
    let failures = snapshot.failures.saturating_add(1);
    let delay = retry_after(failures, sweep, jitter);
    let message = storable(message);
    let mut blockers = vec![Blocker {
        code: BlockerCode::InternalError,
        message: format!("the control plane failed while it worked on this: {message}"),
        since: snapshot.now,
        evidence: json!({ "error": message, "failures": failures }),
        next_retry_at: Some(snapshot.now.plus(delay)),
    }];
    // The newer one first, which is the one that stays.
    blockers.extend(snapshot.blockers.iter().cloned());
    let blockers = merge(&snapshot.blockers, blockers);
    let release = Release { attempt, claim_token, recheck: Recheck::After(delay), failures };
    Ok(Commit {
        writes: vec![Write::BlockersReplace(attempt, blockers), Write::Release(release)],
        ..Commit::default()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::{at, mk_snapshot};
    use crate::phase::Phase;

    const SWEEP: Duration = Duration::from_secs(30);

    fn parts(commit: &Commit) -> (&[Blocker], Release) {
        match &commit.writes[..] {
            [Write::BlockersReplace(_, blockers), Write::Release(release)] => (blockers, *release),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_fault_is_shown_beside_what_was_known_and_keeps_its_age() {
        for phase in Phase::ALL {
            let mut snapshot = mk_snapshot(phase);
            let known = Blocker {
                code: BlockerCode::SubstrateUnknown,
                message: "known".to_owned(),
                since: at(5),
                evidence: json!(null),
                next_retry_at: None,
            };
            let earlier = Blocker {
                code: BlockerCode::InternalError,
                message: "the one before".to_owned(),
                since: at(6),
                ..known.clone()
            };
            snapshot.blockers = vec![known.clone(), earlier];
            let commit = fault(&snapshot, snapshot.claim_token, "a\0b", SWEEP, 0.5).unwrap();
            let (blockers, release) = parts(&commit);
            assert!(blockers.contains(&known), "{phase}: {blockers:?}");
            let shown: Vec<_> =
                blockers.iter().filter(|b| b.code == BlockerCode::InternalError).collect();
            assert_eq!(shown.len(), 1);
            assert!(shown[0].message.contains('b') && !shown[0].message.contains('\0'));
            assert_eq!(shown[0].since, at(6));
            assert_eq!(release.failures, snapshot.failures + 1);
            assert!(commit.events.is_empty() && commit.audit.is_empty());
        }
    }

    #[test]
    fn a_worker_that_lost_its_claim_says_nothing() {
        let snapshot = mk_snapshot(Phase::Ready);
        let lost = ClaimToken(snapshot.claim_token.0 - 1);
        let refusal = fault(&snapshot, lost, "late", SWEEP, 0.5).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::ClaimLost);
    }

    proptest! {
        #[test]
        fn retries_grow_up_to_the_sweep(
            failures in 1_i32..i32::MAX,
            sweep in 1_u64..3_600,
            jitter in 0.0_f64..1.0,
        ) {
            let sweep = Duration::from_secs(sweep);
            let delay = retry_after(failures, sweep, jitter);
            prop_assert!(delay > Duration::ZERO);
            prop_assert!(delay <= sweep.mul_f64(1.25));
            prop_assert!(delay <= retry_after(failures.saturating_add(1), sweep, jitter));
        }

        #[test]
        fn after_many_failures_it_is_looked_at_as_rarely_as_what_is_settled(
            failures in 20_i32..i32::MAX,
            jitter in 0.0_f64..1.0,
        ) {
            prop_assert!(retry_after(failures, SWEEP, jitter) >= SWEEP.mul_f64(0.75));
        }
    }
}
