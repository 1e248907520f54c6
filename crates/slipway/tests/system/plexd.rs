//! Foreign agents: a scripted plexd of each generation enrols with the real
//! binary, knowing only the protocol.
//!
//! The agents that the local engine starts get an address at which nothing
//! answers. They keep retrying, and the token stays in their directory, from
//! where the scripted ones take it, as a plexd takes it from its cloud-init.

use std::io::Write as _;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::{Method, Url};
use serde::Deserialize as _;
use serde_json::{Value, json};
use slipway_testkit::wait;
use uuid::Uuid;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, binary, client};

/// A scripted node: its URL and its key.
struct Scripted<'a> {
    plane: &'a ControlPlane,
    id: String,
    bearer: String,
}

impl Scripted<'_> {
    async fn ask(&self, method: Method, verb: &str, body: &Value) -> (u16, Value) {
        let path = format!("/v1/nodes/{}/{verb}", self.id);
        speak(self.plane, method, &path, Some(&self.bearer), body).await
    }
}

async fn speak(
    plane: &ControlPlane,
    method: Method,
    path: &str,
    bearer: Option<&str>,
    body: &Value,
) -> (u16, Value) {
    let mut request = client().request(method, format!("{}{path}", plane.url()));
    if let Some(bearer) = bearer {
        request = request.bearer_auth(bearer);
    }
    if !body.is_null() {
        request = request.json(body);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Value::Null))
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {value}")).to_owned()
}

/// Declares, waits until a node is expected, and returns resource and token.
async fn waiting(plane: &ControlPlane, handle: &str) -> (String, String) {
    let resource = plane.declare(handle, 0).await;
    plane.wait_for_phase(&resource, "Enrolling").await;
    let directory = plane.node_directory(&resource).await;
    let file = directory.join("rootfs/etc/plexd/bootstrap-token");
    let token = wait::until(TIMEOUT, "the token to be in place", async || {
        std::fs::read_to_string(&file).map_err(|error| error.to_string())
    })
    .await;
    (resource, token.trim().to_owned())
}

async fn older<'a>(plane: &'a ControlPlane, token: &str) -> Scripted<'a> {
    let body = json!({
        "token": token,
        "public_key": BASE64.encode(&[0xa1; 32]),
        "hostname": "older.example",
        "metadata": { "rack": "7" },
        "capabilities": {
            "binary": { "version": "0.9.1", "checksum": "sha256:a1" },
            "builtin_actions": [{ "name": "drain", "description": "", "parameters": null }],
            "hooks": null,
        },
    });
    let (status, reply) = speak(plane, Method::POST, "/v1/register", Some(token), &body).await;
    assert_eq!(status, 201, "{reply}");
    assert_eq!(BASE64.decode(text(&reply, "signing_public_key").as_bytes()).unwrap().len(), 32);
    assert_eq!(text(&reply, "mesh_ip"), "100.64.0.2");
    Scripted { plane, id: text(&reply, "node_id"), bearer: text(&reply, "node_secret_key") }
}

async fn newer<'a>(plane: &'a ControlPlane, resource: &Value, token: &str) -> Scripted<'a> {
    let body = json!({
        "project_id": resource["project_id"],
        "resource_handle": resource["handle"],
        "bootstrap_token": token,
        "nonce": "c2NyaXB0ZWQ",
        "public_key": BASE64.encode(&[0xb2; 32]),
        "requested_resource_id": resource["id"],
    });
    let (status, reply) = speak(plane, Method::POST, "/v1/register", None, &body).await;
    assert_eq!(status, 201, "{reply}");
    assert_eq!(text(&reply, "domain_mesh_cidr"), "100.64.0.0/10");
    assert_eq!(reply["peer_snapshot"][0]["mesh_ip"], "100.64.0.2");
    let id = text(&reply, "node_id");
    let nsk = text(&reply, "nsk");
    let bare = Scripted { plane, id: id.clone(), bearer: nsk.clone() };
    assert_eq!(bare.ask(Method::POST, "heartbeat", &json!({})).await.0, 401, "a bare nsk");
    let mut bytes = id.parse::<Uuid>().unwrap().as_bytes().to_vec();
    bytes.extend(BASE64.decode(nsk.as_bytes()).unwrap());
    Scripted { plane, id, bearer: format!("nsk_live_{}", BASE64URL_NOPAD.encode(&bytes)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plexd_of_each_generation_enrols_unchanged() {
    for mut plane in ControlPlane::each("plexd_generations").await {
        plane.set(&["--public-url", "http://127.0.0.1:9", "--orphan-after", "300s"]);
        plane.start().await;
        let (of_older, token) = waiting(&plane, "older").await;
        let older = older(&plane, &token).await;
        plane.wait_for_phase(&of_older, "Ready").await;
        let (of_newer, token) = waiting(&plane, "newer").await;
        let newer = newer(&plane, &plane.resource(&of_newer).await, &token).await;
        let ready = plane.wait_for_phase(&of_newer, "Ready").await;
        assert_eq!(ready["node"]["hostname"], "newer", "named after its resource");

        let heartbeat = json!({
            "node_id": older.id, "timestamp": "2026-01-31T12:00:00Z", "status": "healthy",
            "uptime": "1h2m", "binary_checksum": "sha256:a2",
        });
        assert_eq!(older.ask(Method::POST, "heartbeat", &heartbeat).await.0, 200);
        let heartbeat = json!({
            "client_now": "2026-01-31T12:00:00Z", "binary_checksum": "sha256:b2",
            "binary_version": "2.0.0", "nat_summary": {},
        });
        let (status, answer) = newer.ask(Method::POST, "heartbeat", &heartbeat).await;
        assert_eq!((status, &answer["rotate_keys"]), (200, &false.into()), "{answer}");
        let (status, state) = newer.ask(Method::GET, "state", &Value::Null).await;
        assert_eq!((status, &state["reachability"]["state"]), (200, &"healthy".into()), "{state}");
        assert_eq!(state["peers"][0]["node_id"], older.id.as_str());
        let (status, events) = newer.ask(Method::GET, "events", &Value::Null).await;
        assert_eq!(
            (status, text(&events, "code").as_str()),
            (501, "signed_event_bus_not_provisioned")
        );
        let shown = plane.get(&format!("/api/v1/nodes/{}", older.id)).await;
        assert_eq!((&shown["mesh_ip"], &shown["version"]), (&"100.64.0.2".into(), &"0.9.1".into()));
        assert_eq!(
            (&shown["checksum"], &shown["status"]),
            (&"sha256:a2".into(), &"healthy".into())
        );

        // The older one leaves by itself, which needs a person's attention.
        assert_eq!(older.ask(Method::POST, "deregister", &Value::Null).await.0, 204);
        let left = plane
            .wait_for(&of_older, "left by its node", |resource| {
                resource["phase"] == "Enrolling" && resource["blockers"][0]["code"] == "node_left"
            })
            .await;
        assert_eq!(left["node"]["deregistered_how"], "left");
        assert_eq!(older.ask(Method::POST, "heartbeat", &json!({})).await.0, 401);
        let (_, state) = newer.ask(Method::GET, "state", &Value::Null).await;
        assert_eq!(state["peers"], json!([]), "nobody's peer any more");

        // The newer one does not support a drain, so nobody waits for it.
        plane.delete(&of_newer).await;
        let gone = plane.wait_for_phase(&of_newer, "Deleted").await;
        assert_eq!(gone["node"]["deregistered_how"], "immediate");
        assert_eq!(newer.ask(Method::GET, "state", &Value::Null).await.0, 401);
        plane.delete(&of_older).await;
        plane.wait_for_phase(&of_older, "Deleted").await;
        assert!(plane.agents().is_empty(), "{:?}", plane.agents());
        plane.stop().await;
    }
}

/// Where the documents say that the server is. Only the agent of this test knows the
/// address of this name, so those of the local engine do not enrol before it does.
const PUBLIC: &str = "http://slipway.invalid";
const CONFIG: &str = "/etc/plexd/config.yaml";

/// Reads a file by its path.
type ReadFile = dyn Fn(&str) -> Option<String>;

/// A machine as its document leaves it: its files, and the variable of the token.
struct Machine {
    file: Box<ReadFile>,
    variable: Option<String>,
}

fn yaml(text: &str) -> Value {
    serde_yaml_ng::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn cloud_init(document: &str) -> Machine {
    let document = yaml(document.strip_prefix("#cloud-config\n").expect(document));
    let unit = "/etc/systemd/system/plexd.service";
    let commands = document["runcmd"].to_string();
    assert!(commands.contains(r#"["systemctl","enable","plexd.service"]"#), "{commands}");
    let files = document["write_files"].clone();
    let file = move |path: &str| {
        let found = files.as_array().unwrap().iter().find(|file| file["path"] == path)?;
        Some(text(found, "content"))
    };
    let installed = file(unit).expect("a unit that is there after a reboot");
    assert!(installed.contains("ExecStart=plexd up\n"), "{installed}");
    assert!(installed.contains("WantedBy=multi-user.target\n"), "{installed}");
    Machine { file: Box::new(file), variable: None }
}

fn daemon_set(manifests: &str) -> Machine {
    let documents: Vec<Value> = serde_yaml_ng::Deserializer::from_str(manifests)
        .map(|document| Value::deserialize(document).unwrap())
        .collect();
    let of_kind = |kind: &str| documents.iter().find(|document| document["kind"] == kind).cloned();
    let (files, secret) = (of_kind("ConfigMap").unwrap(), of_kind("Secret"));
    let pod = of_kind("DaemonSet").unwrap()["spec"]["template"]["spec"].clone();
    let container = pod["containers"][0].clone();
    let mounts = container["volumeMounts"].as_array().unwrap().clone();
    let mounted = mounts.iter().any(|mount| mount["mountPath"] == "/var/lib/plexd");
    assert!(mounted, "its identity has to outlive the pod: {container}");
    let file = move |path: &str| {
        let mount = mounts.iter().find(|mount| mount["mountPath"] == path)?;
        let volumes = pod["volumes"].as_array().unwrap();
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"])?;
        let content = match volume["secret"].is_object() {
            true => &secret.as_ref().unwrap()["stringData"],
            false => &files["data"],
        };
        Some(text(content, mount["subPath"].as_str()?))
    };
    let variables = container["env"].as_array().unwrap();
    let variable = variables.iter().find(|one| one["name"] == "PLEXD_BOOTSTRAP_TOKEN");
    Machine { file: Box::new(file), variable: variable.map(|one| text(one, "value")) }
}

impl Machine {
    /// Enrols as plexd of generation A does, which reads these keys and no others: it
    /// does not start if one of the first four is missing.
    async fn enrol(&self, plane: &ControlPlane) -> (u16, Value) {
        let config = yaml(&(self.file)(CONFIG).expect(CONFIG));
        let base = text(&config["api"], "baseurl");
        for section in ["registration", "node_api"] {
            assert_eq!(text(&config[section], "datadir"), "/var/lib/plexd", "{config}");
        }
        assert!(!text(&config["heartbeat"], "nodeid").is_empty());
        assert!(text(&config["heartbeat"], "interval").ends_with("ms"));
        let token = (self.file)(&text(&config["registration"], "tokenfile"));
        let token = token.or_else(|| self.variable.clone()).expect("a token");
        let token = token.trim();

        let served = plane.url().parse::<Url>().unwrap().socket_addrs(|| None).unwrap()[0];
        let resolved = reqwest::Client::builder().no_proxy().resolve("slipway.invalid", served);
        let key: Vec<u8> = token.bytes().rev().take(32).collect();
        let body = json!({
            "token": token, "public_key": BASE64.encode(&key), "hostname": "by-document",
        });
        let request = resolved.build().unwrap().post(format!("{base}/v1/register"));
        let answer = request.bearer_auth(token).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_enrols_with_the_keys_that_plexd_reads() {
    for mut plane in ControlPlane::each("plexd_documents").await {
        plane.set(&["--public-url", PUBLIC, "--orphan-after", "300s"]);
        plane.start().await;
        for (handle, daemon_set_token) in
            [("booted", None), ("by-secret", Some("secret")), ("by-variable", Some("env"))]
        {
            let (resource, _) = waiting(&plane, handle).await;
            let machine = match daemon_set_token {
                None => {
                    let directory = plane.node_directory(&resource).await;
                    cloud_init(&std::fs::read_to_string(directory.join("user-data")).unwrap())
                }
                Some(how) => {
                    let mut command = binary();
                    command.env("SLIPWAY_KEY", KEY).args(["token", "issue", handle]);
                    command.args(["--daemon-set", how, "--image", "plexd", "--api-url", PUBLIC]);
                    let issued = command.args(["--server", &plane.url()]).output().unwrap();
                    assert!(issued.status.success(), "{issued:?}");
                    daemon_set(&String::from_utf8(issued.stdout).unwrap())
                }
            };
            let (status, reply) = machine.enrol(&plane).await;
            assert_eq!(status, 201, "{handle}: {reply}");
            let ready = plane.wait_for_phase(&resource, "Ready").await;
            assert_eq!(ready["node"]["hostname"], "by-document", "{handle}");
        }
        plane.stop().await;
    }
}

fn packed(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// plexd packs every body over 1 KiB. A refused one leaves the connection usable.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_may_be_packed() {
    for mut plane in ControlPlane::each("plexd_packed").await {
        plane.set(&["--public-url", "http://127.0.0.1:9", "--orphan-after", "300s"]);
        plane.start().await;
        let (resource, token) = waiting(&plane, "packed").await;
        let client = client();
        let send = async |path: &str, bearer: &str, encoding: &str, body: Vec<u8>| {
            let request = client.post(format!("{}{path}", plane.url())).bearer_auth(bearer);
            let request = request.header("content-type", "application/json");
            let answer = request.header("content-encoding", encoding).body(body).send();
            let answer = answer.await.unwrap();
            let status = answer.status().as_u16();
            let text = answer.text().await.unwrap();
            (status, serde_json::from_str::<Value>(&text).unwrap_or_default())
        };
        let actions: Vec<_> =
            (0..32).map(|number| json!({ "name": format!("action-{number:0>32}") })).collect();
        let body = json!({
            "token": token, "public_key": BASE64.encode(&[0xc3; 32]), "hostname": "packed",
            "capabilities": { "builtin_actions": actions },
        });
        let whole = packed(body.to_string().as_bytes());
        assert!(body.to_string().len() > 1_024);
        let cut = whole[..whole.len() - 4].to_vec();
        let bomb = packed(&vec![b' '; 64 << 20]);
        for (encoding, sent, status, code) in [
            ("gzip", cut, 400, "invalid_input"),
            ("gzip", bomb.clone(), 413, "payload_too_large"),
            ("br", whole.clone(), 415, "encoding_unsupported"),
        ] {
            let (answered, answer) = send("/v1/register", &token, encoding, sent).await;
            assert_eq!((answered, text(&answer, "code").as_str()), (status, code), "{answer}");
        }
        let (status, reply) = send("/v1/register", &token, "gzip", whole).await;
        assert_eq!(status, 201, "nothing was consumed: {reply}");
        plane.wait_for_phase(&resource, "Ready").await;

        let body = packed(br#"{"handle":"by-gzip","blueprint":"local-node"}"#);
        let (status, made) = send("/api/v1/resources", KEY, "gzip", body).await;
        assert_eq!((status, &made["handle"]), (202, &"by-gzip".into()), "{made}");
        let (status, problem) = send("/api/v1/resources", KEY, "gzip", bomb).await;
        assert_eq!((status, text(&problem, "code").as_str()), (413, "payload_too_large"));
        plane.stop().await;
    }
}
