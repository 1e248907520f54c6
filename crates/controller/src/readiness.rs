//! Whether the loops over resources keep up: the probe that `/readyz` answers with.
//!
//! A cluster *stands still* when rows of it are due for longer than three sweeps and
//! its loop got none of them in that time. That fails the probe, whatever the other
//! clusters do. A loop that works and is behind does not: with every replica unready,
//! the nodes of all other clusters would find no control plane.

use std::time::Duration;

/// Whether the loops keep up, for `/readyz`. Callers without a key see the detail,
/// so it says what is wrong without internals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub ok: bool,
    pub detail: String,
}

/// What a partition's loop did lately, as ages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Since the loop was made.
    pub started: Duration,
    /// Since the last claim that the database answered.
    pub answered: Option<Duration>,
    /// Since the last claim that got rows.
    pub worked: Option<Duration>,
    /// How long the longest due row has waited for a claim.
    pub overdue: Option<Duration>,
}

/// How the loop of one cluster does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No claim was answered yet, and there is still time for one.
    Starting,
    Sweeping,
    /// Rows wait too long, and the loop works on others meanwhile.
    Behind,
    /// No claim was answered for too long.
    CannotClaim,
    /// Rows wait too long, and the loop gets none.
    StandsStill,
    /// The database does not say what is due.
    CannotList,
}

impl Verdict {
    pub(crate) fn of(progress: Progress, limit: Duration) -> Self {
        let Progress { started, answered, worked, overdue } = progress;
        if answered.unwrap_or(started) > limit {
            return Self::CannotClaim;
        }
        match overdue {
            Some(overdue) if overdue > limit && worked.unwrap_or(started) > limit => {
                Self::StandsStill
            }
            _ if answered.is_none() => Self::Starting,
            Some(overdue) if overdue > limit => Self::Behind,
            _ => Self::Sweeping,
        }
    }

    pub const fn is_failure(self) -> bool {
        matches!(self, Self::CannotClaim | Self::StandsStill | Self::CannotList)
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Starting => "no sweep has been completed yet",
            Self::Sweeping => "sweeping",
            Self::Behind => "sweeping, behind",
            Self::CannotClaim => "due work cannot be claimed",
            Self::StandsStill => "due work is not claimed",
            Self::CannotList => "due work cannot be listed",
        }
    }
}

/// The probe over all clusters that this process serves, by name.
pub fn probe(clusters: &[(&str, Verdict)]) -> Probe {
    let failed = clusters.iter().any(|(_, verdict)| verdict.is_failure());
    // One that has just been added does not count; the first ones do.
    let starting = clusters.iter().all(|(_, verdict)| *verdict == Verdict::Starting);
    let details = clusters.iter().map(|(name, verdict)| format!("{name}: {}", verdict.text()));
    Probe {
        ok: clusters.is_empty() || !(failed || starting),
        detail: details.collect::<Vec<_>>().join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(90);

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    fn well() -> Progress {
        let started = Duration::from_secs(1_000);
        Progress { started, answered: seconds(1), worked: seconds(20), overdue: None }
    }

    #[test]
    fn each_way_to_fail_has_a_verdict() {
        let young = Duration::from_secs(5);
        for (progress, expected) in [
            (well(), Verdict::Sweeping),
            (Progress { overdue: seconds(90), ..well() }, Verdict::Sweeping),
            // Nothing was ever due: an empty cluster.
            (Progress { worked: None, ..well() }, Verdict::Sweeping),
            (Progress { answered: seconds(91), ..well() }, Verdict::CannotClaim),
            (Progress { answered: None, ..well() }, Verdict::CannotClaim),
            (Progress { answered: None, started: young, ..well() }, Verdict::Starting),
            // Long due before this process started: it has its time too.
            (
                Progress { answered: None, worked: None, started: young, overdue: seconds(9_000) },
                Verdict::Starting,
            ),
            (Progress { overdue: seconds(91), ..well() }, Verdict::Behind),
            (
                Progress { overdue: seconds(91), worked: seconds(91), ..well() },
                Verdict::StandsStill,
            ),
            (Progress { overdue: seconds(91), worked: None, ..well() }, Verdict::StandsStill),
        ] {
            assert_eq!(Verdict::of(progress, LIMIT), expected, "{progress:?}");
        }
    }

    #[test]
    fn one_cluster_that_stands_still_fails_the_probe_beside_an_empty_one() {
        let probe_of = |verdicts: &[Verdict]| {
            let clusters: Vec<_> = verdicts.iter().map(|verdict| ("east", *verdict)).collect();
            probe(&clusters).ok
        };
        assert!(probe_of(&[]), "a process that serves no cluster answers requests");
        for verdict in [Verdict::CannotClaim, Verdict::StandsStill, Verdict::CannotList] {
            assert!(!probe_of(&[verdict]));
            assert!(!probe_of(&[Verdict::Sweeping, verdict]), "{verdict:?}");
        }
        assert!(!probe_of(&[Verdict::Starting]), "at the start");
        assert!(probe_of(&[Verdict::Sweeping, Verdict::Starting]), "a cluster was added");
        assert!(probe_of(&[Verdict::Sweeping, Verdict::Behind]));
        let shown = probe(&[("local", Verdict::Sweeping), ("east", Verdict::StandsStill)]);
        assert_eq!(shown.detail, "local: sweeping; east: due work is not claimed");
    }
}
