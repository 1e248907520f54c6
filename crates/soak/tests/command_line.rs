//! The program as `cargo xtask` calls it.

use std::process::{Command, Output};

fn soak(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slipway-soak")).args(arguments).output().expect("it runs")
}

#[test]
fn the_same_seed_prints_the_same_schedule_and_starts_nothing() {
    let arguments = ["--print", "--seed", "7", "--seconds", "30"];
    let (first, second) = (soak(&arguments), soak(&arguments));
    assert!(first.status.success(), "{first:?}");
    assert_eq!(first.stdout, second.stdout);
    let other = soak(&["--print", "--seed", "8", "--seconds", "30"]);
    assert_ne!(first.stdout, other.stdout);
    let text = String::from_utf8(first.stdout).expect("text");
    assert!(text.starts_with("schedule ") && text.contains("ms later"), "{text}");
}

#[test]
fn a_call_that_is_not_understood_ends_with_two_and_the_usage() {
    let refused = soak(&["--replicas", "3"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let text = String::from_utf8(refused.stderr).expect("text");
    assert!(text.contains("`--replicas` is 1 or 2") && text.contains("cargo xtask soak"), "{text}");
    assert!(soak(&["--help"]).status.success());
}
