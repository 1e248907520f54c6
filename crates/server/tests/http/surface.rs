//! What holds for every route: unknown routes, request ids, probes,
//! metrics, stopping.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{KEY, World};

const ID: &str = "0192f0c1-2b3c-7d4e-8f50-123456789abc";

#[tokio::test]
async fn an_unknown_route_and_a_wrong_method_are_problems() {
    let world = World::new().await;
    let home = world.get("/").await;
    assert_eq!((home.status.as_u16(), home.header("location")), (307, "/docs"), "for browsers");
    for path in ["/api/v1/nothing", "/api/v2/resources", "/elsewhere"] {
        let answer = world.get(path).await;
        answer.refused(404, "route_not_found");
        assert_eq!(answer.json()["instance"], path);
    }
    let answer = world.ask("PUT", "/api/v1/resources", KEY, "").await;
    answer.refused(405, "method_not_allowed");
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let allowed = answer.header("allow");
    assert!(allowed.contains("POST") && allowed.contains("GET"), "{allowed}");
    let answer = world.ask("POST", "/healthz", "", "").await;
    answer.refused(405, "method_not_allowed");
}

/// The `type` of every refusal is a page that needs no key.
#[tokio::test]
async fn the_type_of_a_problem_leads_to_its_line() {
    let world = World::new().await;
    let refused = world.get("/api/v1/nothing").await.json();
    let followed = world.ask("GET", refused["type"].as_str().unwrap(), "", "").await;
    assert_eq!(
        (followed.status.as_u16(), followed.header("location")),
        (307, "/docs#route_not_found")
    );
    let page = world.ask("GET", "/docs", "", "").await;
    assert!(page.text.contains("id=\"route_not_found\""), "{}", page.text);
    world.get("/docs/problems/no_such").await.refused(404, "route_not_found");
    let document = world.ask("GET", "/openapi.json", "", "").await.json();
    assert_eq!(document["openapi"], "3.1.0");
}

#[tokio::test]
async fn a_request_id_is_kept_if_it_is_harmless_and_made_otherwise() {
    let world = World::new().await;
    let ask = async |id: Option<&str>| {
        let mut request = Request::get("/api/v1/nothing");
        if let Some(id) = id {
            request = request.header("x-request-id", id);
        }
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.json()["correlation_id"], answer.header("x-request-id"));
        answer.header("x-request-id").to_owned()
    };
    assert_eq!(ask(Some("trace-7")).await, "trace-7");
    assert_eq!(ask(None).await.len(), 36);
    assert_eq!(ask(Some("two words")).await.len(), 36);
}

#[tokio::test]
async fn probes_need_no_key_and_follow_what_they_ask() {
    let world = World::new().await;
    let alive = world.ask("GET", "/healthz", "", "").await;
    assert_eq!((alive.status.as_u16(), alive.text.as_str()), (200, "ok"));

    let ready = world.ask("GET", "/readyz", "", "").await;
    assert_eq!(ready.status.as_u16(), 200, "{ready:?}");
    let names: Vec<_> = ready.json()["probes"].as_array().unwrap().clone();
    assert_eq!((&names[0]["name"], &names[1]["name"]), (&"database".into(), &"sweep".into()));

    world.loops_ok.store(false, Ordering::Relaxed);
    let unready = world.ask("GET", "/readyz", "", "").await;
    assert_eq!(unready.status.as_u16(), 503);
    assert_eq!(unready.json()["ready"], false);
}

#[tokio::test]
async fn metrics_count_by_the_pattern_of_the_route() {
    let world = World::new().await;
    world.get(&format!("/api/v1/nodes/{ID}")).await.refused(404, "node_not_found");
    world.get("/nowhere/at/all").await;
    let metrics = world.ask("GET", "/metrics", "", "").await;
    let line = |start: &str| metrics.text.lines().any(|line| line.starts_with(start));
    assert!(
        line(
            r#"slipway_http_requests_total{method="GET",route="/api/v1/nodes/{id}",status="4xx"} 1"#
        ),
        "{}",
        metrics.text
    );
    assert!(
        line(r#"slipway_http_requests_total{method="GET",route="unmatched",status="4xx"} 1"#),
        "{}",
        metrics.text
    );
    assert!(!metrics.text.contains(ID), "a path must not become a label");
    assert!(line("slipway_http_request_seconds_bucket"), "{}", metrics.text);
}

#[tokio::test]
async fn the_loops_are_shown() {
    let world = World::new().await;
    let loops = world.get("/api/v1/loops").await.json();
    assert_eq!((&loops[0]["name"], &loops[0]["activations"]), (&"resources".into(), &3.into()));
}

/// Requests in progress at the stop are answered; then serving ends.
#[tokio::test]
async fn a_stop_lets_requests_finish() {
    let (entered, mut inside) = tokio::sync::mpsc::channel::<()>(1);
    let release = std::sync::Arc::new(tokio::sync::Notify::new());
    let waiting = std::sync::Arc::clone(&release);
    let router = Router::new().route(
        "/slow",
        get(move || async move {
            entered.send(()).await.unwrap();
            waiting.notified().await;
            "done"
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(slipway_server::serve(
        listener,
        router,
        slipway_server::Listening::default(),
        async {
            let _ = stopped.await;
        },
    ));
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    inside.recv().await.unwrap();
    stop.send(()).unwrap();
    // Wait until the stop is in effect, so that the request really outlives it.
    let refused = async { while TcpStream::connect(address).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(20), refused).await.unwrap();
    release.notify_one();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("done"), "{answer}");
    tokio::time::timeout(Duration::from_secs(20), serving).await.unwrap().unwrap();
}

/// What a parameter takes by its schema: values that fit, and one that does not.
fn samples(schema: &Value, schemas: &Value) -> (Vec<String>, Option<&'static str>) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return samples(&schemas[name], schemas);
    }
    let members = schema["enum"].as_array();
    let listed =
        members.map(|all| all.iter().map(|one| one.as_str().unwrap().to_owned()).collect());
    match (listed, schema["type"].as_str().unwrap()) {
        (Some(listed), "string") => (listed, Some("no-such")),
        (None, "boolean") => (vec!["true".to_owned(), "false".to_owned()], Some("yes")),
        (None, "integer") => {
            let least = schema["minimum"].as_i64().unwrap();
            let most = schema["maximum"].as_i64().unwrap_or(least);
            (vec![least.to_string(), most.to_string()], Some("many"))
        }
        (None, "string" | "array") => (Vec::new(), None),
        other => panic!("{other:?}"),
    }
}

/// A generated client sends what the document says, so the server takes exactly that.
#[tokio::test]
async fn every_query_parameter_takes_what_its_schema_says() {
    let world = World::new().await;
    let resource = world.declare("web-1").await;
    let document = world.ask("GET", "/openapi.json", "", "").await.json();
    let schemas = &document["components"]["schemas"];
    let ask = async |path: &str, name: &str, value: &str| {
        let path = path.replace("{id}", &resource.to_string()).replace("{project}", "default");
        let path =
            path.replace("{cloud}", "local").replace("{kind}/{reference}", "project/default");
        let path = path.replace("{source}", "shop");
        let answer = world.open(&format!("{path}?{name}={value}"), &[]).await;
        answer.status().as_u16()
    };
    let texts = [
        ("since", "8d"),
        ("since", "1h"),
        ("since", "2026-01-31T12:00:00Z"),
        ("until", "90s"),
        ("actor", "key:admin"),
        ("requested_by", "key:admin"),
        ("project", "default"),
        ("cloud", "local"),
        ("profile", "files"),
        ("workspace", "prod"),
        ("label", "a=b"),
        ("handle", "web-1"),
        ("id", "default"),
        ("name", "local"),
        ("subject", "local-node"),
        ("blueprint", "local-node"),
        ("actor_id", ID),
        ("resource_id", ID),
        ("generator_id", ID),
        ("from", "2026-01-31T12:00:00Z"),
        ("to", "2026-01-31T12:00:00Z"),
        ("pak_id", ID),
        ("work_type", "build"),
        ("cluster_name", "berlin&name=edge"),
    ];
    let mut checked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for parameter in methods["get"]["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            if parameter["in"] != "query" || name == "cursor" || path.contains("{reference}") {
                continue;
            }
            // It takes two together.
            if path == "/api/v1/agents/" && name != "cluster_name" {
                continue;
            }
            let schema = &parameter["schema"];
            let is_time = schema.get("format") == Some(&json!("date-time"));
            assert!(!is_time || path == "/api/v1/admin/audit-logs", "{path} {name}: ages too");
            let (mut fitting, wrong) = samples(schema, schemas);
            fitting
                .extend(texts.iter().filter(|text| text.0 == name).map(|text| text.1.to_owned()));
            assert!(!fitting.is_empty(), "{path} {name}");
            for value in fitting {
                let status = ask(path, name, &value).await;
                assert_ne!(status, 400, "{path}?{name}={value}");
                checked += 1;
            }
            if let Some(wrong) = wrong {
                assert_eq!(ask(path, name, wrong).await, 400, "{path}?{name}={wrong}");
            }
        }
    }
    assert!(checked > 100, "{checked}");
    let unfreeze = &document["paths"]["/api/v1/control/freeze"]["delete"]["parameters"][0];
    assert_eq!((&unfreeze["name"], &unfreeze["required"]), (&json!("reason"), &json!(true)));
}
