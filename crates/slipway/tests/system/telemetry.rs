//! The telemetry of the control plane: metrics against their page, the
//! dashboard and the alerts; log lines against the fields they must have.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, client};

const PAGE: &str = "../../docs/metrics.md";
const DASHBOARD: &str = "../../deploy/grafana/slipway.json";
const ALERTS: &str = "../../deploy/prometheus/alerts.yaml";

/// One metric, as documented or as exposed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Described {
    kind: String,
    labels: BTreeSet<String>,
    help: String,
}

/// By sample name, without the suffixes of a histogram.
type Metrics = BTreeMap<String, Described>;

fn exposed(text: &str) -> Metrics {
    let mut metrics = Metrics::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            let help = help.trim_end_matches('.').to_owned();
            metrics.insert(name.to_owned(), Described { help, ..Described::default() });
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            metrics.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let family = metrics.keys().rev().find(|known| {
                let rest = name.strip_prefix(known.as_str());
                rest.is_some_and(|rest| {
                    ["", "_total", "_info", "_bucket", "_count", "_sum"].contains(&rest)
                })
            });
            let family = family.unwrap_or_else(|| panic!("no family: {line}")).clone();
            let labels = &mut metrics.get_mut(&family).unwrap().labels;
            let inner = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
            for pair in inner.iter().flat_map(|(pairs, _)| pairs.split("\",")) {
                let label = pair.split('=').next().unwrap();
                if label != "le" && !label.is_empty() {
                    labels.insert(label.to_owned());
                }
            }
        }
    }
    let sampled = |(name, found): (String, Described)| {
        let suffix = match found.kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        (format!("{name}{suffix}"), found)
    };
    metrics.into_iter().map(sampled).collect()
}

/// The rows `| name | kind | labels | help |` of the page.
fn documented() -> Metrics {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let row = |line: &str| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, labels, help] = cells[..] else { return None };
        let name = name.trim_matches('`');
        name.starts_with("slipway_").then(|| {
            let labels = labels.split(',').map(|label| label.trim().trim_matches('`'));
            let labels = labels.filter(|label| !label.is_empty()).map(str::to_owned).collect();
            let described = Described { kind: kind.to_owned(), labels, help: help.to_owned() };
            (name.to_owned(), described)
        })
    };
    page.lines().filter_map(row).collect()
}

/// Every name with our prefix in the expressions of a document.
fn names_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("slipway_")).map(str::to_owned).collect()
}

/// The names under which queries can find samples of these.
fn askable(metrics: &Metrics) -> BTreeSet<String> {
    let names = |(name, found): (&String, &Described)| match found.kind.as_str() {
        "histogram" => ["_bucket", "_count", "_sum"].map(|end| format!("{name}{end}")).to_vec(),
        _ => vec![name.clone()],
    };
    metrics.iter().flat_map(names).collect()
}

async fn metrics_text(plane: &ControlPlane) -> String {
    plane.send(Method::GET, "/metrics", None).await.text().await.unwrap()
}

/// The value of a sample, summed over the lines that contain all of these.
fn sum(text: &str, name: &str, having: &[&str]) -> f64 {
    let of_name = |line: &&str| line.split(['{', ' ']).next() == Some(name);
    let samples = text.lines().filter(of_name);
    samples
        .filter(|line| having.iter().all(|part| line.contains(part)))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum()
}

/// A whole life leaves a trace in every metric; the page describes each of them
/// correctly, and the dashboard and the alerts query nothing that does not
/// exist.
#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_are_those_of_the_page_the_dashboard_and_the_alerts() {
    let mut plane = ControlPlane::new(None);
    let log = plane.data_dir().parent().unwrap().join("events.jsonl");
    plane.set(&["--event-log", log.to_str().unwrap()]);
    plane.start().await;
    let gone = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&gone, "Ready").await;
    plane.assert_goes(&gone).await;
    let ready = plane.declare("web-2", 0).await;
    plane.wait_for_phase(&ready, "Ready").await;

    // The API shows a transition when it is committed; it is counted right after.
    let text = wait::until(TIMEOUT, "everything to be counted", async || {
        let text = metrics_text(&plane).await;
        let ready = sum(&text, "slipway_transitions_total", &["to=\"Ready\""]);
        let followed = text.contains("slipway_subscription_lag_events{");
        if ready >= 2.0 && followed { Ok(text) } else { Err(text) }
    })
    .await;
    let (exposed, documented) = (exposed(&text), documented());
    for (name, found) in &exposed {
        assert_eq!(documented.get(name), Some(found), "docs/metrics.md on {name}");
    }
    let (exposed_names, documented_names): (BTreeSet<_>, BTreeSet<_>) =
        (exposed.keys().collect(), documented.keys().collect());
    assert_eq!(exposed_names, documented_names);

    let (askable, dashboard, alerts) = (
        askable(&exposed),
        std::fs::read_to_string(DASHBOARD).unwrap(),
        std::fs::read_to_string(ALERTS).unwrap(),
    );
    let model: Value = serde_json::from_str(&dashboard).expect("the dashboard is JSON");
    let panels = model["panels"].as_array().unwrap();
    assert!(panels.iter().any(|panel| panel["targets"][0]["expr"].is_string()));
    let rules: Value = serde_yaml_ng::from_str(&alerts).expect("the alerts are YAML");
    for rule in rules["groups"][0]["rules"].as_array().unwrap() {
        assert!(rule["alert"].is_string() && rule["expr"].is_string(), "{rule}");
        assert!(rule["annotations"]["summary"].is_string(), "{rule}");
    }
    for (what, text) in [("the dashboard", &dashboard), ("the alerts", &alerts)] {
        let names = names_in(text);
        assert!(!names.is_empty(), "{what} asks for nothing");
        let unknown: Vec<_> = names.difference(&askable).collect();
        assert!(unknown.is_empty(), "{what} asks for {unknown:?}, which nothing exposes");
    }

    assert_eq!(sum(&text, "slipway_transitions_total", &["from=\"none\"", "to=\"Pending\""]), 2.0);
    assert_eq!(sum(&text, "slipway_transitions_total", &["to=\"Deleted\""]), 1.0);
    assert!(sum(&text, "slipway_reaction_seconds_count", &[]) >= 2.0, "{text}");
    assert!(sum(&text, "slipway_phase_seconds_count", &["phase=\"Deregistering\""]) >= 1.0);
    assert!(sum(&text, "slipway_action_seconds_count", &["kind=\"apply\"", "\"done\""]) >= 2.0);
    assert!(sum(&text, "slipway_claims_taken_total", &["partition=\"local\""]) >= 4.0);
    assert_eq!(sum(&text, "slipway_ready", &[]), 1.0);
    plane.stop().await;
}

/// All fields of a line: its own and those of its spans.
fn fields(line: &Value) -> BTreeMap<String, Value> {
    let spans = line["spans"].as_array().into_iter().flatten().chain([line, &line["fields"]]);
    let objects = spans.filter_map(Value::as_object);
    objects.flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Follows a request through the loop to the agent, by the fields of the lines.
#[tokio::test(flavor = "multi_thread")]
async fn every_log_line_names_what_it_is_about() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let mut plane = ControlPlane::new(None);
    plane.set(&["--log-format", "json"]);
    plane.set_environment("RUST_LOG", "debug");
    plane.start().await;
    let answer = client()
        .post(format!("{}/api/v1/resources", plane.url()))
        .bearer_auth(KEY)
        .header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"))
        .json(&json!({ "handle": "web-1", "blueprint": "local-node" }))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.headers()["x-request-id"], TRACE, "the trace names the request");
    let id = answer.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    let ready = plane.wait_for_phase(&id, "Ready").await;
    let attempt = ready["attempt"]["id"].as_str().unwrap();
    let audit = plane.get("/api/v1/audit?limit=100").await.to_string();
    assert!(audit.contains(TRACE), "the audit keeps it: {audit}");
    let agent_log = plane.node_directory(&id).await.join("agent.log");
    // The agent logs its call when it has the answer, which may come after Ready.
    let agent_log = wait::until(TIMEOUT, "the agent to log its call", async || {
        let text = std::fs::read_to_string(&agent_log).unwrap();
        text.contains("request_id").then_some(text)
    })
    .await;
    plane.assert_goes(&id).await;
    plane.stop().await;

    let log = plane.log_text();
    let lines: Vec<_> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("JSON: {line}")))
        .map(|line| fields(&line))
        .collect();
    let having = |name: &str, value: &str| {
        let lines = lines.iter().filter(|line| line.get(name).is_some_and(|found| found == value));
        lines.collect::<Vec<_>>()
    };
    // The request, by the caller's trace; and from it to the resource.
    let declared = having("message", "declared");
    assert_eq!(declared.len(), 1, "{declared:?}");
    assert_eq!(declared[0]["correlation_id"], TRACE);
    assert_eq!(declared[0]["trace_id"], TRACE);
    assert_eq!(declared[0]["resource_id"], id.as_str());
    assert_eq!(declared[0]["attempt_id"], attempt);
    for line in having("message", "answered") {
        assert!(line.contains_key("correlation_id") && line.contains_key("path"), "{line:?}");
    }
    // The loop, by the resource.
    let ticks = having("message", "ticked");
    assert!(ticks.len() >= 4, "{ticks:?}");
    for line in ticks.iter().chain(&having("message", "started a node agent")) {
        assert_eq!(line["resource_id"], id.as_str(), "{line:?}");
        assert_eq!(line["attempt_id"], attempt, "{line:?}");
        assert_eq!(line["partition"], "local", "{line:?}");
        assert_eq!(line["worker"], plane.read("worker"), "{line:?}");
    }
    // The agent, by the correlation id of its call.
    let enrolled = having("message", "a node enrolled");
    assert_eq!(enrolled.len(), 1, "{enrolled:?}");
    assert_eq!(enrolled[0]["resource_id"], id.as_str());
    let call = enrolled[0]["correlation_id"].as_str().unwrap();
    assert!(call.starts_with("agent-"), "{call}");
    assert!(agent_log.contains(call), "{agent_log}");
}
