//! The first minute on a bare machine: nothing but the program and a home
//! folder. The test runs the next steps that `slipway up` prints, as printed, in
//! shells that know nothing of each other.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use slipway_testkit::ports::lasting_loopback_port;
use slipway_testkit::process::{Signal, Spawned, processes_with_argument};
use slipway_testkit::wait;

use crate::control_plane::{TIMEOUT, binary};

/// Runs a shell line on that machine.
fn shell(home: &Path, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_slipway"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env_clear().env("PATH", path).env("HOME", home).current_dir(home);
    shell.stdin(Stdio::null()).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_minute_of_a_bare_machine_needs_no_export() {
    let begun = Instant::now();
    let home = tempfile::tempdir().unwrap();
    let printed = home.path().join("printed");
    // The default port may be taken on the test machine.
    let address = format!("127.0.0.1:{}", lasting_loopback_port().unwrap());
    let mut up = binary();
    up.arg("up").env("HOME", home.path()).env("SLIPWAY_LISTEN", &address);
    up.stdout(std::fs::File::create(&printed).unwrap());
    up.stderr(std::fs::File::create(home.path().join("log")).unwrap());
    let mut up = Spawned::start(&mut up).unwrap();

    let lines = wait::until(TIMEOUT, "the next steps to be printed", async || {
        let file = BufReader::new(std::fs::File::open(&printed).unwrap());
        let steps: Vec<_> = file
            .lines()
            .map(Result::unwrap)
            .filter_map(|line| line.strip_prefix("    ").map(str::to_owned))
            .collect();
        if steps.last().is_some_and(|last| last.contains("delete")) {
            Ok(steps)
        } else {
            Err(std::fs::read_to_string(home.path().join("log")).unwrap())
        }
    })
    .await;
    assert_eq!(lines.len(), 4, "four commands and nothing to export: {lines:?}");
    assert_eq!(lines[1], "slipway apply -f sample.yaml --wait");
    let mut said = Vec::new();
    for command in &lines {
        let output = shell(home.path(), command);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{command}: {errors}");
        said.push((String::from_utf8(output.stdout).unwrap(), errors));
    }
    let (created, progress) = &said[1];
    assert!(created.contains("+ Resource web-1") && created.contains("2 created"), "{created}");
    // Piped, so a plain line for each change and not a live one.
    assert!(progress.contains("Ready") && !progress.contains('\r'), "{progress}");
    assert!(said[2].0.starts_with("web-1 is Ready since"), "{}", said[2].0);
    let (deleted, _) = &said[3];
    assert!(deleted.contains("done"), "{deleted}");

    let contexts = shell(home.path(), "slipway context show -o jsonpath={.name}/{.server}");
    let shown = String::from_utf8(contexts.stdout).unwrap();
    assert_eq!(shown, format!("local/http://{address}\n"));

    let agents = format!("agent node --dir {}", home.path().canonicalize().unwrap().display());
    assert!(processes_with_argument(&agents).unwrap().is_empty(), "nothing is left running");
    up.signal(Signal::Terminate).unwrap();
    assert!(up.exit(TIMEOUT).await.unwrap().success());
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}
