//! Runs every command of the page about Fleet, in order: the tour, and the drill of a deletion and
//! its recovery.

use std::process::Stdio;

use crate::control_plane::{ControlPlane, KEY, binary};

/// The lines of all `sh` blocks, also of those within a list.
fn commands() -> Vec<String> {
    let page = std::fs::read_to_string("../../docs/fleet.md").unwrap();
    let mut commands = Vec::new();
    let mut inside = false;
    for line in page.lines().map(str::trim) {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            command if inside && !command.is_empty() => commands.push(command.to_owned()),
            _ => {}
        }
    }
    commands
}

/// Programs that do not end, which have tests of their own.
const RUN_ELSEWHERE: [&str; 2] = ["slipway agent cluster", "slipway agent directory"];

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_page_about_fleet_works() {
    for mut plane in ControlPlane::each("every_command_of_the_page_about_fleet").await {
        plane.start().await;
        plane.wait_until_ready().await;
        let folder = tempfile::tempdir().unwrap();
        let manifests = folder.path().join("manifests");
        std::fs::create_dir(&manifests).unwrap();
        let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n";
        std::fs::write(manifests.join("web.yaml"), manifest).unwrap();
        let mut run = 0;
        for command in commands() {
            if RUN_ELSEWHERE.iter().any(|start| command.starts_with(start)) {
                continue;
            }
            let Some(arguments) = command.strip_prefix("slipway ") else { continue };
            let output = binary()
                .args(arguments.split_whitespace())
                .env("SLIPWAY_SERVER", plane.url())
                .env("SLIPWAY_KEY", KEY)
                .current_dir(folder.path())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "`{command}` failed: {said}");
            run += 1;
        }
        assert!(run >= 18, "the page has a tour and a drill, {run} commands were run");
    }
}
