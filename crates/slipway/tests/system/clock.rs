//! Wall clocks that jump by two hours, forward and back. On PostgreSQL only the
//! control plane's clock jumps, on SQLite the database's too, which is the same
//! host.

use std::time::Duration;

use serde_json::Value;
use slipway_testkit::process::{Signal, send_signal};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};

const JUMP: Duration = Duration::from_secs(2 * 3_600);

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_stalls_nothing_and_repeats_nothing() {
    for mut plane in ControlPlane::each("a_clock_that_jumps").await {
        let orders = plane.take_orders();
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("events.jsonl");
        plane.set(&["--event-log", log.to_str().unwrap(), "--lease", "3s"]);
        plane.start().await;
        let first = plane.declare("first", 0).await;
        plane.wait_for_phase(&first, "Ready").await;
        let agent = plane.agent(&first).await;
        let swept = plane.declare("swept", 0).await;
        plane.wait_for_phase(&swept, "Ready").await;
        let mut written = Written::default();
        written.observe(&plane, &first).await;

        for (number, shift) in [Ok(JUMP), Ok(Duration::ZERO), Err(JUMP)].into_iter().enumerate() {
            // Its absence is to be proven again one lease after Deleted.
            let gone = plane.declare(&format!("gone-{number}"), 0).await;
            plane.wait_for_phase(&gone, "Ready").await;
            plane.delete(&gone).await;
            plane.wait_for_phase(&gone, "Deleted").await;
            orders.shift_clock(shift).unwrap();
            let proven = |gone: &Value| !gone["attempt"]["absence_proven_at"].is_null();
            plane.wait_for(&gone, "proven gone", proven).await;
            let next = plane.declare(&format!("next-{number}"), 0).await;
            plane.wait_for_phase(&next, "Ready").await;
            assert_eq!(plane.agent(&first).await.pid, agent.pid, "the node was left alone");
            // An earlier resource loses its agent. Only the sweep detects that,
            // and it depends on the recorded due time.
            let lost = plane.agent(&swept).await;
            send_signal(lost.pid, Signal::Kill).unwrap();
            wait::until(TIMEOUT, "the sweep to start the agent again", async || {
                let resource = plane.resource(&swept).await;
                let name = resource["attempt"]["xr_name"].as_str().unwrap();
                match plane.agents_of(name).as_slice() {
                    [agent] if agent.pid != lost.pid => Ok(()),
                    other => Err(format!("{other:?}\n{resource}\n{}", plane.log_tail())),
                }
            })
            .await;
            plane.wait_until_ready().await;
            written.observe(&plane, &first).await;
            let events = plane.events().await.len();
            wait::until(TIMEOUT, "the event log to have all", async || {
                let logged = std::fs::read_to_string(&log).unwrap_or_default().lines().count();
                if logged >= events { Ok(()) } else { Err(format!("{logged} of {events}")) }
            })
            .await;
        }
        plane.assert_goes(&first).await;
        written.observe(&plane, &first).await;
        plane.stop().await;
    }
}

/// The last update time of a resource, which never goes back.
#[derive(Default)]
struct Written(String);

impl Written {
    async fn observe(&mut self, plane: &ControlPlane, id: &str) {
        let resource = plane.resource(id).await;
        let now = resource["updated_at"].as_str().unwrap().to_owned();
        // RFC 3339 with a fixed number of digits: ordered as text.
        assert!(now >= self.0, "{now} after {}", self.0);
        self.0 = now;
    }
}
