//! Runs every command of the README: the reader's first minutes must not depend
//! on anybody's memory.

use std::process::Stdio;

use crate::control_plane::{ControlPlane, KEY, binary};

fn readme() -> String {
    std::fs::read_to_string("../../README.md").unwrap()
}

/// The lines of all `sh` blocks.
fn commands() -> Vec<String> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in readme().lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            command if inside && !command.is_empty() => commands.push(command.to_owned()),
            _ => {}
        }
    }
    commands
}

/// Lines that are not commands of the binary, or that start it permanently: the
/// demos have their own tests, `cargo xtask test` runs this test, and every control
/// plane here is started in one of the two ways of `slipway up`.
const RUN_ELSEWHERE: [&str; 7] = [
    "cargo run --release -- demo",
    "cargo xtask test",
    "slipway up",
    "slipway up --database-url postgres://user@host/slipway",
    "cargo run --release -- fleet demo",
    "cargo run --release -- tenant demo",
    "cargo run --release -- workspace demo",
];

/// PostgreSQL has its own tool for the one, and the other would report that the
/// test server runs without fsync.
const OF_SQLITE: [&str; 2] = ["slipway backup", "slipway doctor"];

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_readme_works() {
    for mut plane in ControlPlane::each("every_command_of_the_readme_works").await {
        plane.start().await;
        plane.wait_until_ready().await;
        let folder = tempfile::tempdir().unwrap();
        let mut run = 0;
        for command in commands() {
            if RUN_ELSEWHERE.contains(&command.as_str()) {
                continue;
            }
            let of_sqlite = OF_SQLITE.iter().any(|start| command.starts_with(start));
            if of_sqlite && plane.database_url().is_some() {
                continue;
            }
            let arguments = command.strip_prefix("slipway ").expect("a command of the binary");
            let (arguments, file) = match arguments.split_once(" > ") {
                Some((arguments, file)) => (arguments, Some(file)),
                None => (arguments, None),
            };
            let output = binary()
                .args(arguments.split_whitespace())
                .env("SLIPWAY_SERVER", plane.url())
                .env("SLIPWAY_KEY", KEY)
                .env("SLIPWAY_DATA_DIR", plane.data_dir())
                .current_dir(folder.path())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "`{command}` failed: {said}");
            if let Some(file) = file {
                std::fs::write(folder.path().join(file), output.stdout).unwrap();
            }
            run += 1;
        }
        assert!(run >= 10, "the README has a tour of at least ten commands, {run} were run");
    }
}

#[test]
fn the_two_commands_are_the_first_two() {
    assert_eq!(commands()[..2], RUN_ELSEWHERE[..2]);
}
