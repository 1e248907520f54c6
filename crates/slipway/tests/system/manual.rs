//! The documents that are generated from the command line.

use std::path::Path;

use crate::control_plane::{ControlPlane, KEY, binary};

fn output(arguments: &[&str]) -> String {
    let output = binary().args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_reference_of_the_command_line_is_up_to_date() {
    let path = Path::new("../../docs/cli.md");
    let written = std::fs::read_to_string(path).unwrap();
    assert!(
        written == output(&["reference", "cli"]),
        "docs/cli.md is old: run `cargo xtask generate`"
    );
}

#[test]
fn manual_pages_know_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    output(&["man", pages.to_str().unwrap()]);
    let page = std::fs::read_to_string(pages.join("slipway-resource-create.1")).unwrap();
    assert!(page.contains("\\-\\-blueprint"), "{page}");
    assert!(pages.join("slipway-doctor.1").exists());
}

#[test]
fn a_slip_names_what_was_probably_meant() {
    for (typed, meant) in [
        (&["resorce", "list"][..], "resource"),
        (&["resource", "creat"], "create"),
        (&["resource", "list", "--projet", "x"], "--project"),
    ] {
        let output = binary().args(typed).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(meant), "{typed:?}: {text}");
    }
}

/// Completions include names that the server knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_slip_in_a_name_names_what_was_probably_meant() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let id = plane.declare("frontend", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let create = ["resource", "create", "--handle", "web-1", "--blueprint"];
    for (typed, code, meant) in [
        (&["resource", "get", "fronted"][..], 5, Some("did you mean `frontend`?")),
        (&["resource", "delete", "frontendd", "--yes"], 5, Some("did you mean `frontend`?")),
        (&["resource", "get", "something-else"], 5, None),
        (&[&create[..], &["local-noed"]].concat(), 5, Some("did you mean `local-node`?")),
        (
            &[&create[..], &["local-node", "--project", "defualt"]].concat(),
            5,
            Some("did you mean `default`?"),
        ),
    ] {
        let mut command = binary();
        command.args(typed).env("SLIPWAY_SERVER", plane.url()).env("SLIPWAY_KEY", KEY);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{typed:?}: {text}");
        assert_eq!(meant.is_some(), text.contains("did you mean"), "{text}");
        assert!(meant.is_none_or(|meant| text.contains(meant)), "{typed:?}: {text}");
    }
    plane.stop().await;
}
