//! A template that never ends, or wants all memory, ends within its limits, and the processor is
//! free after it.

use serde_json::{Value, json};

use crate::control_plane::ControlPlane;

#[tokio::test(flavor = "multi_thread")]
async fn a_template_that_does_not_end_is_ended() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    plane.wait_until_ready().await;
    let pipeline = made(&plane, "/api/v1/generators", &json!({ "name": "pipeline" })).await;
    let generator = pipeline["generator"]["id"].clone();
    let body = json!({ "name": "web", "generator_id": generator });
    let stack = id(&made(&plane, "/api/v1/stacks", &body).await);
    let bombs = [
        (
            "loop",
            "{% for a in range(end=60000) %}{% for b in range(end=60000) %}{% endfor %}{% endfor %}",
        ),
        ("memory", "{% set all = range(end=2000000000) %}{{ all | length }}"),
        ("output", "{% for a in range(end=9000000) %}aaaaaaaaaaaaaaaa{% endfor %}"),
    ];
    for (name, text) in bombs {
        let body = json!({ "name": name, "template_content": text, "parameters_schema": "{}" });
        let template = id(&made(&plane, "/api/v1/templates", &body).await);
        let path = format!("/api/v1/stacks/{stack}/deployment-objects/from-template");
        let body = json!({ "template_id": template, "parameters": {} });
        let (status, answer) = post(&plane, &path, &body).await;
        assert_eq!((status, &answer["code"]), (422, &json!("template_failed")), "{name}: {answer}");
        assert_eq!(renderers(&plane), Vec::<String>::new(), "{name}");
    }
    // And the server goes on.
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ name }}\n";
    let body = json!({ "name": "fine", "template_content": text, "parameters_schema": "{}" });
    let template = id(&made(&plane, "/api/v1/templates", &body).await);
    let path = format!("/api/v1/templates/{template}/render");
    let (status, answer) = post(&plane, &path, &json!({ "parameters": { "name": "web" } })).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer["yaml_content"].as_str().unwrap().contains("name: web"));
}

async fn post(plane: &ControlPlane, path: &str, body: &Value) -> (u16, Value) {
    plane.call(reqwest::Method::POST, path, Some(body.clone())).await
}

async fn made(plane: &ControlPlane, path: &str, body: &Value) -> Value {
    let (status, answer) = post(plane, path, body).await;
    assert_eq!(status, 201, "{answer}");
    answer
}

fn id(document: &Value) -> String {
    document["id"].as_str().unwrap_or_else(|| panic!("{document}")).to_owned()
}

/// The processes of the server that render, as their command lines; none while nothing renders.
fn renderers(plane: &ControlPlane) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let command = |folder: std::fs::DirEntry| {
        let status = std::fs::read_to_string(folder.path().join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().to_owned();
        let command = std::fs::read_to_string(folder.path().join("cmdline")).ok()?;
        (parent == plane.pid().to_string() && command.contains("__render-template"))
            .then_some(command)
    };
    processes.filter_map(command).collect()
}
