//! A server at Hetzner Cloud with the real binary on each database. The provider is a stand-in
//! that checks every request, and boots the real agent from the user data of a server.

use std::time::Duration;

use serde_json::Value;
use slipway_standin::hetzner::{Boot, Provider, ProviderOptions};

use crate::control_plane::{ControlPlane, KEY, binary};

pub(crate) const TOKEN: &str = "hetzner-token-of-the-test";
const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/samples/hetzner.yaml");

fn run(plane: &ControlPlane, command: &str) -> String {
    let mut program = binary();
    program.env("SLIPWAY_KEY", KEY).args(command.split_whitespace());
    let output = program.args(["--server", &plane.url()]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{command}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn declare(plane: &ControlPlane, handle: &str, more: &str) -> String {
    let command = format!(
        "resource create --project shop --handle {handle} --blueprint hetzner-server -o json {more}"
    );
    let made: Value = serde_json::from_str(&run(plane, &command)).unwrap();
    made["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn provider(machines: &std::path::Path) -> Provider {
    let words = [env!("CARGO_BIN_EXE_slipway"), "agent", "node", "--dir", "{directory}"];
    let boot = Boot { command: words.map(str::to_owned).to_vec(), folder: machines.to_owned() };
    let options = ProviderOptions {
        // So many requests an hour that lists follow each other closely.
        limit: 3_600_000,
        action_time: Duration::from_millis(100),
        boot: Some(boot),
        ..ProviderOptions::new(TOKEN)
    };
    Provider::start(options).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_at_hetzner_enrols_by_cloud_init_and_leaves_nothing_behind() {
    for mut plane in ControlPlane::each("a_server_at_hetzner").await {
        let folder = slipway_testkit::memory::tempdir().unwrap();
        let tokens = folder.path().join("tokens");
        std::fs::create_dir(&tokens).unwrap();
        std::fs::write(tokens.join("shop"), TOKEN).unwrap();
        let provider = provider(&folder.path().join("machines")).await;
        plane.set(&["--reconcile-interval", "1s", "--lease", "3s"]);
        plane.set(&["--provider-token-dir", tokens.to_str().unwrap()]);
        plane.start().await;
        for command in [
            format!("apply -f {SAMPLE}"),
            "project create shop".to_owned(),
            "credential assign hetzner --project shop".to_owned(),
            format!(
                "cluster create cloud --engine hetzner --access hetzner/shop@{}",
                provider.url()
            ),
            "cluster assign cloud --project shop".to_owned(),
        ] {
            run(&plane, &command);
        }
        let protected = "-p location=nbg1 -p delete_protection=true";
        let id = declare(&plane, "web-1", protected);
        let ready = plane.wait_for_phase(&id, "Ready").await;
        assert_eq!(ready["engine"], "hetzner", "{ready}");
        plane
            .wait_for(&id, "protected at the provider", |_| {
                provider.servers("main").iter().all(|server| server.is_protected)
            })
            .await;
        let servers = provider.servers("main");
        assert_eq!((servers.len(), provider.machines()), (1, 1));
        let server = &servers[0];
        assert_eq!((&*server.server_type, &*server.location), ("cx22", "nbg1"));
        let made_for = &server.labels["slipway.dev/resource"];
        assert_eq!(*made_for, id);

        // The second one has no capacity anywhere, and says so.
        provider.exhaust("cx22@fsn1", "resource_unavailable");
        let second = declare(&plane, "web-2", "-p location=fsn1");
        let blocked = |seen: &Value| {
            let blockers = seen["blockers"].as_array().unwrap();
            blockers.iter().any(|one| one["code"] == "no_capacity")
        };
        plane.wait_for(&second, "blocked for its capacity", blocked).await;
        let said = plane.explained(&second, &["no_capacity"]).await;
        insta::assert_snapshot!("no_capacity", said);
        plane.delete(&second).await;
        plane.wait_for_phase(&second, "Deleted").await;

        plane.delete(&id).await;
        let proven = |seen: &Value| seen["attempt"]["absence_proven_at"].is_string();
        plane.wait_for(&id, "proven gone", proven).await;
        assert!(provider.servers("main").is_empty());
        let found = run(&plane, "leaks find");
        assert!(!found.contains("cannot"), "{found}");
        let shown = run(&plane, "cluster get cloud -o json");
        for text in [shown, plane.log_text()] {
            assert!(!text.contains(TOKEN), "the token is shown: {text}");
        }
        plane.stop().await;
        assert_eq!(provider.machines(), 0);
        assert_eq!(provider.violations(), Vec::<String>::new());
    }
}
