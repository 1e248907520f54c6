//! Checks whether the clocks agree. Stored times are the database's; ours is used
//! for display and deadlines, so a difference causes nonsense rather than harm,
//! but certificates and people rely on it.

use std::time::Duration;

use slipway_core::Timestamp;

use super::finding::{Area, Finding};

/// More than a response takes, and more than the second that HTTP rounds to.
const NOTABLE: Duration = Duration::from_secs(3);
/// Too much to be drift.
const WRONG: Duration = Duration::from_secs(60);

/// The time of each other clock, with ours when it was read.
#[derive(Debug, Default)]
pub(super) struct Times {
    pub(super) database: Option<(Timestamp, Timestamp)>,
    pub(super) server: Option<(Timestamp, Timestamp)>,
}

pub(super) fn inspect(times: &Times) -> Vec<Finding> {
    let mut area = Area::new("clock");
    for (check, pair) in [("database", times.database), ("server", times.server)] {
        let Some((theirs, ours)) = pair else { continue };
        let apart = theirs.since(ours).max(ours.since(theirs));
        let detail = format!("{:.1} s apart from this machine", apart.as_secs_f64());
        let remedy = "set the clocks by NTP on both machines";
        if apart >= WRONG {
            area.problem(check, detail, remedy);
        } else if apart >= NOTABLE {
            area.warning(check, detail, remedy);
        } else {
            area.ok(check, detail);
        }
    }
    area.into_findings()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::*;

    #[test]
    fn clocks_that_differ_are_told_whichever_is_ahead() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        for (theirs, status) in [
            (1_000, Status::Ok),
            (1_002, Status::Ok),
            (1_010, Status::Warning),
            (990, Status::Warning),
            (1_060, Status::Problem),
            (900, Status::Problem),
        ] {
            let times = Times { database: Some((at(theirs), at(1_000))), server: None };
            let found = inspect(&times);
            assert_eq!((found.len(), found[0].status), (1, status), "{theirs}");
        }
        assert!(inspect(&Times::default()).is_empty());
    }
}
