//! Two control planes on one PostgreSQL and one substrate root. Whichever is
//! killed or frozen, the other continues its work once the lease has expired,
//! and the one that comes back does no harm.
//!
//! `cargo xtask soak --scenario replicas` does the same with 200 resources for
//! a minute.

use std::time::{Duration, Instant};

use slipway_testkit::postgres;
use slipway_testkit::process::Signal;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};

const ALL: [&str; 4] = ["Requested", "Ready", "Deleting", "Deleted"];

/// The shortest allowed lease.
const LEASE: Duration = Duration::from_secs(3);
/// Time beyond the lease: the poll of the other control plane (250 ms), loading
/// and observing a batch, starting processes, on two cores that other tests
/// use.
const TAKE_OVER_LIMIT: Duration = Duration::from_secs(3 + 5);

/// Which of the two gets which fault in each round. Every pair occurs, each of
/// them as the first fault and as a later one.
const ROUNDS: [(usize, Hurt); 6] = [
    (0, Hurt::Freeze),
    (1, Hurt::Kill),
    (0, Hurt::Kill),
    (1, Hurt::Freeze),
    (1, Hurt::Kill),
    (0, Hurt::Freeze),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hurt {
    Kill,
    Freeze,
}

impl Hurt {
    fn begin(self, plane: &mut ControlPlane) -> Instant {
        match self {
            Self::Kill => plane.kill(),
            Self::Freeze => plane.signal(Signal::Stop),
        }
        Instant::now()
    }

    /// A frozen one resumes only after another replica could take over its claims.
    async fn end(self, plane: &mut ControlPlane, since: Instant) {
        match self {
            Self::Kill => plane.start().await,
            Self::Freeze => {
                let beyond = LEASE + Duration::from_millis(300);
                wait::until(TIMEOUT, "its lease to be over", async || since.elapsed() > beyond)
                    .await;
                plane.signal(Signal::Continue);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_control_planes_share_the_work_and_survive_each_other() {
    let Some(server) = postgres::shared("two_control_planes").await else {
        return;
    };
    let mut first = ControlPlane::new(Some(server.database("replicas").await));
    first.set(&["--lease", "3s"]);
    let second = first.beside();
    let mut planes = [first, second];
    for plane in &mut planes {
        plane.start().await;
    }

    let mut ids = Vec::new();
    for (round, (hurt, how)) in ROUNDS.into_iter().enumerate() {
        let other = 1 - hurt;
        let mut declared = Vec::new();
        for number in 0..5 {
            declared.push(planes[hurt].declare(&format!("node-{round}-{number}"), 0).await);
        }
        let since = how.begin(&mut planes[hurt]);
        for id in &declared {
            planes[other]
                .wait_for(id, "taken over", |resource| resource["phase"] != "Pending")
                .await;
        }
        let took = since.elapsed();
        assert!(
            took < TAKE_OVER_LIMIT,
            "round {round}, plane {hurt}, {how:?}: taken over {took:?}"
        );
        how.end(&mut planes[hurt], since).await;
        ids.extend(declared);
    }
    for id in &ids {
        planes[0].wait_for_phase(id, "Ready").await;
        // Panics unless there is exactly one.
        planes[1].agent(id).await;
    }
    assert_eq!(planes[0].agents().len(), ids.len());

    // The same during deletion: requested at one, which is then away for a while.
    for (round, (hurt, how)) in ROUNDS.into_iter().take(2).enumerate() {
        for id in ids.iter().skip(round).step_by(2) {
            planes[hurt].delete(id).await;
        }
        let since = how.begin(&mut planes[hurt]);
        how.end(&mut planes[hurt], since).await;
    }
    for id in &ids {
        let gone = planes[1].wait_for_phase(id, "Deleted").await;
        assert_eq!(gone["node"]["deregistered_how"], "acknowledged");
        planes[0].assert_each_event_once(id, &ALL).await;
    }
    assert!(planes[0].agents().is_empty(), "{:?}", planes[0].agents());
    for id in &ids {
        let proven = |gone: &serde_json::Value| gone["attempt"]["absence_proven_at"].is_string();
        planes[1].wait_for(id, "proven gone a second time", proven).await;
    }
    for plane in &mut planes {
        plane.stop().await;
    }
}
