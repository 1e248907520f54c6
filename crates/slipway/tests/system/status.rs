//! `slipway status` as a person on call sees it: the real binary in a terminal of 80 columns.

use std::cell::RefCell;

use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};
use crate::explained::mask;
use crate::wrong_inputs::{fits, typed};

/// What is said for a moment while a loop is just at work or has not run yet, and before the
/// mode is acknowledged.
const PASSING: [&str; 6] =
    ["not run yet", " s behind", "due work waits", " errors", "settled       no", " finishing"];

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_an_installation_fits_a_terminal() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let folder = tempfile::tempdir().unwrap();
    let shown = RefCell::new(String::new());
    wait::until(TIMEOUT, "a status of loops that all ran", async || {
        let text = typed(folder.path(), &plane.url(), 80, &["status"]);
        let settled = !PASSING.iter().any(|passing| text.contains(passing));
        shown.replace(text.clone());
        if settled { Ok(()) } else { Err(text) }
    })
    .await;
    let text = shown.into_inner();
    assert!(text.lines().all(|line| fits(line, 80)), "{text}");
    insta::assert_snapshot!(mask(&text));
    plane.stop().await;
}
