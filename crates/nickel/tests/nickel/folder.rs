//! No file outside of the folder is read.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::{Ended, Files, end, program};

const SECRET: &str = "\"the secret of somebody else\"";

/// A folder `inner`, beside a file that it must not read.
fn inner_beside_secret(main: &str) -> Files {
    let files = Files::of(&[("secret.ncl", SECRET), ("inner/main.ncl", main)]);
    fs::create_dir_all(files.path("inner/sub")).unwrap();
    files
}

#[track_caller]
fn refused(ended: &Ended) {
    ended.is_refused(4, "outside of the folder");
    assert!(!ended.errors.contains("somebody else"), "{ended:?}");
}

#[test]
fn an_import_with_dots_does_not_leave_the_folder() {
    for main in [
        "import \"../secret.ncl\"",
        "import \"sub/../../secret.ncl\"",
        "{ a | (import \"../secret.ncl\") = 1 }",
        "let f = fun x => \"%{import \"../secret.ncl\"}\" in f 1",
        "import \"../secret.ncl\" as 'Text",
    ] {
        refused(&inner_beside_secret(main).run("inner/main.ncl", &[]));
    }
}

#[test]
fn an_import_of_an_import_does_not_leave_the_folder() {
    let files = inner_beside_secret("import \"sub/next.ncl\"");
    fs::write(files.path("inner/sub/next.ncl"), "import \"../../secret.ncl\"").unwrap();
    let ended = files.run("inner/main.ncl", &["--errors", "json"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let expected = json!({
        "file": "sub/next.ncl", "line": 1, "column": 1, "field": null,
        "message": "cannot import ../../secret.ncl: it is outside of the folder; \
                    imports are relative and stay in the folder",
    });
    assert_eq!(ended.faults(), [expected]);
}

#[test]
fn an_absolute_path_is_refused_even_into_the_folder() {
    let files = inner_beside_secret("");
    for name in ["secret.ncl", "inner/sub/own.ncl"] {
        let main = format!("import {:?}", files.path(name));
        fs::write(files.path("inner/main.ncl"), main).unwrap();
        refused(&files.run("inner/main.ncl", &[]));
    }
}

#[test]
fn a_symbolic_link_does_not_leave_the_folder() {
    let files = inner_beside_secret("{ a = import \"link.ncl\" }");
    let link = files.path("inner/link.ncl");
    for target in ["../secret.ncl".into(), files.path("secret.ncl")] {
        symlink(target, &link).unwrap();
        refused(&files.run("inner/main.ncl", &[]));
        fs::remove_file(&link).unwrap();
    }
    symlink("..", files.path("inner/above")).unwrap();
    fs::write(files.path("inner/main.ncl"), "import \"above/secret.ncl\"").unwrap();
    refused(&files.run("inner/main.ncl", &[]));
}

#[test]
fn a_symbolic_link_within_the_folder_is_followed() {
    let files = inner_beside_secret("import \"link.ncl\"");
    fs::write(files.path("inner/sub/own.ncl"), "1 + 1").unwrap();
    symlink("sub/own.ncl", files.path("inner/link.ncl")).unwrap();
    assert_eq!(files.run("inner/main.ncl", &[]).document(), 2);
}

#[test]
fn the_file_itself_is_in_the_folder() {
    let files = inner_beside_secret("1");
    let inner = files.path("inner");
    let root = ["--root", inner.to_str().unwrap()];
    refused(&files.run("secret.ncl", &root));
    symlink("../secret.ncl", files.path("inner/link.ncl")).unwrap();
    refused(&files.run("inner/link.ncl", &root));
}

#[test]
fn a_wider_root_allows_what_is_below_it() {
    let files = inner_beside_secret("import \"../secret.ncl\"");
    let root = files.path("");
    let ended = files.run("inner/main.ncl", &["--root", root.to_str().unwrap()]);
    assert_eq!(ended.document(), "the secret of somebody else");
}

#[test]
fn the_import_path_of_nickel_is_ignored() {
    let files = inner_beside_secret("import \"secret.ncl\"");
    let mut command = program();
    command.env("NICKEL_IMPORT_PATH", files.path("")).arg(files.path("inner/main.ncl"));
    end(&mut command).is_refused(1, "cannot import secret.ncl");
}

#[test]
fn a_package_is_not_imported() {
    let files = inner_beside_secret("import secret");
    files.run("inner/main.ncl", &[]).is_refused(1, "cannot import the package secret");
}

#[test]
fn data_of_other_formats_is_imported() {
    let files = Files::of(&[
        ("main.ncl", "[import \"a.json\", import \"b.yaml\", import \"c.toml\", import \"d.txt\"]"),
        ("a.json", "{\"a\": 1}"),
        ("b.yaml", "b: 2"),
        ("c.toml", "c = 3"),
        ("d.txt", "four"),
    ]);
    let expected = json!([{ "a": 1 }, { "b": 2 }, { "c": 3 }, "four"]);
    assert_eq!(files.run("main.ncl", &[]).document(), expected);
}
