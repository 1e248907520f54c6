//! A second project from nothing: commands create everything that it needs, a
//! real node runs in it, and commands remove all of it again.

use std::process::{Output, Stdio};

use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, binary};

fn run(plane: &ControlPlane, line: &str) -> Output {
    binary()
        .args(line.split(' '))
        .env("SLIPWAY_SERVER", plane.url())
        .env("SLIPWAY_KEY", KEY)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

const UP: [&str; 7] = [
    "project create team-a -l team=a",
    "credential create second --cloud local",
    "credential assign second --project team-a",
    "cluster assign local --project team-a",
    "label define team --propagate",
    "resource create --handle web-1 --blueprint local-node --project team-a --credential second --wait",
    "resource list -l team=a -o yaml",
];

/// Each is refused while the resource exists.
const EXPECTED_LINES: [&str; 4] = [
    "project delete team-a --yes",
    "credential unassign second --project team-a --yes",
    "credential delete second --yes",
    "cluster unassign --project team-a --yes",
];

const DOWN: [&str; 3] = [
    "resource delete web-1 --project team-a --yes --wait",
    "credential unassign second --project team-a --yes",
    "credential delete second --yes",
];

/// Refused until absence is proven a second time, one lease after Deleted.
const UNASSIGN: &str = "cluster unassign --project team-a --yes";

const LAST: [&str; 2] = ["label delete team --yes", "project delete team-a --yes"];

#[tokio::test(flavor = "multi_thread")]
async fn a_second_project_is_furnished_lived_in_and_taken_down() {
    for mut plane in ControlPlane::each("a_second_project_is_furnished").await {
        plane.set(&["--lease", "3s"]);
        plane.start().await;
        let mut shown = String::new();
        for line in UP {
            let output = run(&plane, line);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "`{line}` failed: {said}");
            shown = String::from_utf8_lossy(&output.stdout).into_owned();
        }
        assert!(shown.contains("phase: Ready") && shown.contains("source: project"), "{shown}");
        for line in EXPECTED_LINES {
            let output = run(&plane, line);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "`{line}`: {said}");
            assert!(said.contains("resource(s)"), "`{line}` does not say what holds it: {said}");
        }
        let succeeds = |line: &str| {
            let output = run(&plane, line);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "`{line}` failed: {said}");
        };
        DOWN.into_iter().for_each(succeeds);
        let early = run(&plane, UNASSIGN);
        let said = String::from_utf8_lossy(&early.stderr);
        assert!(said.contains("cluster_assignment_immutable"), "{said}");
        wait::until(TIMEOUT, "the second proof of absence", async || {
            run(&plane, UNASSIGN).status.success()
        })
        .await;
        LAST.into_iter().for_each(succeeds);
        assert_eq!(run(&plane, "project get team-a").status.code(), Some(5), "it is gone");
        assert!(plane.agents().is_empty());
        plane.stop().await;
    }
}
