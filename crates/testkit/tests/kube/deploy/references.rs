//! Everything that the chart and the image refer to exists: settings of the
//! program, files of the tree, values on the chart's page.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::documents::{documents, text};

/// Settings that the chart sets from its own values, and those that mean
/// nothing in a pod.
const OF_THE_CHART: [&str; 16] = [
    "admin_key",
    "behind_proxy",
    "config",
    "data_dir",
    "database_url",
    "drain_timeout",
    "kubeconfig_dir",
    "listen",
    "log_format",
    "namespace_prefix",
    "node_ca_file",
    "probe_listen",
    "public_url",
    "substrate_root",
    "tls_cert",
    "tls_key",
];

/// The settings of `slipway up`, as the generated page lists them.
fn settings() -> BTreeSet<String> {
    let page = text("docs/cli.md");
    let mut sections = page.split("\n## ");
    let section = sections.find(|section| section.starts_with("`slipway up`"));
    section
        .expect("a section about `slipway up`")
        .split("Variable `SLIPWAY_")
        .skip(1)
        .map(|rest| rest.split('`').next().unwrap_or_default().to_lowercase())
        .collect()
}

#[test]
fn the_settings_of_the_chart_are_those_of_the_program() {
    let schema: Value =
        serde_json::from_str(&text("deploy/helm/slipway/values.schema.json")).unwrap();
    let taken = &schema["properties"]["settings"]["propertyNames"]["enum"];
    let taken: Vec<String> = serde_json::from_value(taken.clone()).unwrap();
    let expected: Vec<String> =
        settings().into_iter().filter(|key| !OF_THE_CHART.contains(&key.as_str())).collect();
    assert_eq!(taken, expected, "change `settings` in values.schema.json");

    for document in documents("deploy/manifests/slipway.yaml") {
        let containers = &document["spec"]["template"]["spec"]["containers"];
        for variable in containers[0]["env"].as_array().into_iter().flatten() {
            let name = variable["name"].as_str().unwrap();
            let key = name.strip_prefix("SLIPWAY_").unwrap().to_lowercase();
            assert!(settings().contains(&key), "nothing reads {name}");
        }
    }
}

#[test]
fn the_variables_of_the_agents_chart_are_those_of_the_program() {
    let page = text("docs/cli.md");
    for document in documents("deploy/manifests/agent.yaml") {
        let containers = &document["spec"]["template"]["spec"]["containers"];
        for variable in containers[0]["env"].as_array().into_iter().flatten() {
            let name = format!("`{}`", variable["name"].as_str().unwrap());
            assert!(page.contains(&name), "nothing reads {name}");
        }
    }
}

#[test]
fn every_value_is_on_the_page_of_the_chart() {
    fn walk(values: &Value, prefix: &str, page: &str, missing: &mut Vec<String>) {
        match values {
            Value::Object(members) if !members.is_empty() => {
                for (name, value) in members {
                    let dot = if prefix.is_empty() { "" } else { "." };
                    walk(value, &format!("{prefix}{dot}{name}"), page, missing);
                }
            }
            _ if page.contains(&format!("`{prefix}`")) => {}
            _ => missing.push(prefix.to_owned()),
        }
    }
    for chart in ["slipway", "slipway-agent"] {
        let values = documents(&format!("deploy/helm/{chart}/values.yaml"));
        let mut missing = Vec::new();
        walk(&values[0], "", &text(&format!("deploy/helm/{chart}/README.md")), &mut missing);
        assert_eq!(missing, Vec::<String>::new());
    }
}

#[test]
fn the_image_is_built_from_what_is_there() {
    let dockerfile = text("deploy/docker/Dockerfile");
    let ignore = text(".dockerignore");
    let copies = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("COPY "))
        .filter(|rest| !rest.starts_with("--from"));
    let mut sources = Vec::new();
    for copy in copies {
        let mut words: Vec<&str> = copy.split_whitespace().collect();
        words.pop();
        sources.extend(words);
    }
    let expected =
        ["Cargo.toml", "Cargo.lock", ".cargo", "crates", "deploy/demo", "deploy/samples"];
    assert_eq!(sources, expected);
    for source in sources {
        assert!(Path::new("../..").join(source).exists(), "{source}");
        assert!(ignore.lines().any(|line| line == format!("!{source}")), "{source} is ignored");
    }

    let toolchain = text("rust-toolchain.toml");
    let channel = toolchain.split('"').nth(1).unwrap();
    assert!(dockerfile.contains(&format!("\nFROM rust:{channel}-")), "{channel}");
    assert!(text("crates/slipway/Cargo.toml").contains("\nname = \"slipway\"\n"));
    assert!(dockerfile.contains("--package slipway --bin slipway"));

    let workspace = text("Cargo.toml");
    for chart in ["slipway", "slipway-agent"] {
        let chart = documents(&format!("deploy/helm/{chart}/Chart.yaml"));
        let version = chart[0]["appVersion"].as_str().unwrap();
        assert!(workspace.contains(&format!("\nversion = \"{version}\"\n")), "{version}");
    }
}
