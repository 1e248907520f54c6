//! What is generated from the command line.

use std::path::Path;

use crate::control_plane::binary;

fn output(arguments: &[&str]) -> String {
    let output = binary().args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_reference_of_the_command_line_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let written = std::fs::read_to_string(path).unwrap();
    assert!(written == output(&["reference"]), "docs/cli.md is old: run `cargo xtask generate`");
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let text = output(&["completions", shell]);
        assert!(text.contains("force-drain") && text.contains("doctor"), "{shell}");
    }
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
