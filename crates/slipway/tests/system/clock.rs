//! Wall clocks that jump, by two hours there and back. On PostgreSQL it is the
//! control plane's clock, on SQLite the database's too, which is the same host.

use std::time::Duration;

use slipway_testkit::process::{Signal, send_signal};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};

const JUMP: Duration = Duration::from_secs(2 * 3_600);

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_stalls_nothing_and_repeats_nothing() {
    for mut plane in ControlPlane::each("a_clock_that_jumps").await {
        let orders = plane.take_orders();
        plane.start().await;
        let first = plane.declare("first", 0).await;
        plane.wait_for_phase(&first, "Ready").await;
        let agent = plane.agent(&first).await;
        let swept = plane.declare("swept", 0).await;
        plane.wait_for_phase(&swept, "Ready").await;
        let mut written = Written::default();
        written.observe(&plane, &first).await;

        for (number, shift) in [Ok(JUMP), Ok(Duration::ZERO), Err(JUMP)].into_iter().enumerate() {
            orders.shift_clock(shift).unwrap();
            let next = plane.declare(&format!("next-{number}"), 0).await;
            plane.wait_for_phase(&next, "Ready").await;
            assert_eq!(plane.agent(&first).await.pid, agent.pid, "the node was left alone");
            // One from before loses its agent. Nobody notices that but the
            // sweep, which goes by the time at which it was to look again.
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
        }
        plane.assert_goes(&first).await;
        written.observe(&plane, &first).await;
        plane.stop().await;
    }
}

/// The last time at which a resource was written, which never goes back.
#[derive(Default)]
struct Written(String);

impl Written {
    async fn observe(&mut self, plane: &ControlPlane, id: &str) {
        let resource = plane.resource(id).await;
        let now = resource["updated_at"].as_str().unwrap().to_owned();
        // RFC 3339 with a fixed number of digits: in order as text.
        assert!(now >= self.0, "{now} after {}", self.0);
        self.0 = now;
    }
}
