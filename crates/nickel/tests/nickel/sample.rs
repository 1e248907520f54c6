//! The sample workspace and the schema that the program brings along.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{Files, evaluate};

const SAMPLE: &str = "../../samples/workspace";

/// The sample with one text in `servers.ncl` replaced.
fn sample_with(old: &str, new: &str) -> Files {
    let read = |name| fs::read_to_string(Path::new(SAMPLE).join(name)).unwrap();
    let servers = read("servers.ncl");
    assert_eq!(servers.matches(old).count(), 1, "{old} is not once in the sample");
    Files::of(&[
        ("workspace.ncl", &read("workspace.ncl")),
        ("servers.ncl", &servers.replace(old, new)),
    ])
}

#[test]
fn the_sample_is_a_workspace_document() {
    let group = |name, role, count, min, max, pattern, depends_on: Option<&str>| {
        let mut group = json!({
            "name": name, "role": role, "count": count,
            "scale": {
                "min": min, "max": max,
                "template": { "hostname_pattern": pattern, "hardware": {} },
            },
            "blueprint": "local-node",
            "delete_lock": role == "ControlPlane",
        });
        if let Some(other) = depends_on {
            group["depends_on"] = json!([other]);
        }
        group
    };
    let expected = json!({
        "apiVersion": "slipway.dev/v1",
        "kind": "Workspace",
        "metadata": { "name": "sample", "project": "default" },
        "spec": {
            "groups": [
                group("control-plane", "ControlPlane", 1, 1, 3, "cp-{n}", None),
                group("workers", "Worker", 3, 2, 5, "worker-{n}", Some("load-balancer")),
                group("load-balancer", "LoadBalancer", 1, 1, 2, "lb-{n}", Some("control-plane")),
            ],
            "servers": [],
        },
    });
    let ended = evaluate(&Path::new(SAMPLE).join("workspace.ncl"), &[]);
    assert_eq!(ended.document(), expected);
}

#[test]
fn a_control_plane_cannot_be_unlocked() {
    let sample = sample_with("role = 'ControlPlane,", "role = 'ControlPlane, delete_lock = false,");
    let ended = sample.run("workspace.ncl", &["--errors", "json"]);
    let faults = ended.faults();
    assert_eq!((ended.code, faults.len()), (Some(1), 1), "{ended:?}");
    assert_eq!(faults[0]["field"], "spec.groups[0].delete_lock");
    let message = faults[0]["message"].as_str().unwrap();
    assert!(message.contains("the delete_lock of a ControlPlane is always true"), "{message}");

    let locked = sample_with("role = 'Worker,", "role = 'Worker, delete_lock = true,");
    let document = locked.run("workspace.ncl", &[]).document();
    assert_eq!(document["spec"]["groups"][1]["delete_lock"], true);
}

#[test]
fn the_schema_refuses_what_contradicts_it_with_field_and_place() {
    for (old, new, field, words) in [
        ("max = 5", "max = 1", "scale.max", "max is 1, which is less than min, 2"),
        ("min = 2", "min = -1", "scale.min", "a whole number of at least 0"),
        ("min = 2", "min = 1.5", "scale.min", "a whole number of at least 0"),
        ("worker-{n}", "worker", "scale.template.hostname_pattern", "contains {n} exactly once"),
        ("worker-{n}", "{n}-{n}", "scale.template.hostname_pattern", "contains {n} exactly once"),
        ("'Worker", "'Worcer", "role", "tag not in the enum type"),
    ] {
        let ended = sample_with(old, new).run("workspace.ncl", &["--errors", "json"]);
        let fault = ended.faults()[0].clone();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(fault["field"], format!("spec.groups[1].{field}"), "{ended:?}");
        assert_eq!(fault["file"], "servers.ncl", "{ended:?}");
        assert!(fault["line"].is_u64() && fault["column"].is_u64(), "{ended:?}");
        assert!(fault["message"].as_str().unwrap().contains(words), "{ended:?}");
    }
}

#[test]
fn the_schema_is_imported_from_any_folder_and_a_file_of_its_path_goes_first() {
    let import = "import \"schemas/infrastructure/compute/scaling.ncl\"";
    let roles = format!("('Worker | ({import}).NodeRole)");
    let files = Files::of(&[
        ("main.ncl", "{ here = import \"deep/er/roles.ncl\", own = import \"own/it.ncl\" }"),
        ("deep/er/roles.ncl", &roles),
        ("own/it.ncl", import),
        ("own/schemas/infrastructure/compute/scaling.ncl", "\"a pinned copy\""),
    ]);
    let expected = json!({ "here": "Worker", "own": "a pinned copy" });
    assert_eq!(files.run("main.ncl", &[]).document(), expected);
    let other = Files::of(&[("main.ncl", "import \"schemas/other.ncl\"")]);
    other.run("main.ncl", &[]).is_refused(1, "main.ncl:1:1: cannot import schemas/other.ncl");
}
