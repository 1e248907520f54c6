//! SIGTERM in the middle of work: the control plane ends by itself within its
//! limit, with everything either finished or given back, and the next start
//! goes on where it left off.

use std::time::{Duration, Instant};

use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, PATIENCE};

/// How long loops and requests may take after the signal.
const DRAIN_LIMIT: Duration = Duration::from_secs(15);
const COUNT: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn told_to_stop_while_provisioning_it_ends_in_time_and_goes_on_later() {
    for mut plane in ControlPlane::each("told_to_stop_while_provisioning").await {
        plane.start().await;
        let mut ids = Vec::new();
        for number in 0..COUNT {
            ids.push(plane.declare(&format!("web-{number}"), 0).await);
        }
        wait::until(PATIENCE, "a first agent process", async || !plane.agents().is_empty()).await;
        let asked = Instant::now();
        plane.stop().await;
        let took = asked.elapsed();
        assert!(took < DRAIN_LIMIT, "it took {took:?}: {}", plane.log_tail());
        let log = plane.log_text();
        assert!(!log.contains("not everything was finished in time"), "{}", plane.log_tail());
        assert!(log.contains("stopped"), "{}", plane.log_tail());

        plane.start().await;
        for id in &ids {
            let ready = plane.wait_for_phase(id, "Ready").await;
            assert_eq!(ready["blockers"].as_array().map(Vec::len), Some(0), "{ready}");
            plane.agent(id).await;
            plane.assert_each_event_once(id, &["Requested", "Ready"]).await;
        }
        assert_eq!(plane.agents().len(), COUNT, "one process each");

        // In the middle of taking them down.
        for id in &ids {
            plane.delete(id).await;
        }
        plane.stop().await;
        plane.start().await;
        for id in &ids {
            plane.wait_for_phase(id, "Deleted").await;
        }
        assert!(plane.agents().is_empty());
        plane.stop().await;
    }
}
