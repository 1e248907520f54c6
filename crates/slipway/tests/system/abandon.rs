//! Deletions that can never end, with the real engine and real agents: a node directory
//! that somebody removed by half, and a substrate root that is gone.

use std::fs;

use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, binary};

impl ControlPlane {
    async fn abandon(&self, id: &str, confirm: &str) -> (u16, Value) {
        let body = json!({ "reason": "nobody can read it", "confirm": confirm });
        self.call(Method::POST, &format!("/api/v1/resources/{id}/abandon"), Some(body)).await
    }

    /// Waits until the loop cannot read the substrate of a resource; returns why.
    async fn wait_unreadable(&self, id: &str) -> String {
        let unreadable = |seen: &Value| unknown_of(seen).is_some();
        let seen = self.wait_for(id, "unreadable", unreadable).await;
        unknown_of(&seen).unwrap()
    }

    /// The open leaks of an attempt, in the order of their kinds.
    async fn leaks_of(&self, resource: &Value) -> Vec<Value> {
        let leaks = self.get("/api/v1/leaks").await;
        let own = |leak: &&Value| leak["provisioned_resource_id"] == resource["attempt"]["id"];
        let mut own: Vec<_> = leaks.as_array().unwrap().iter().filter(own).cloned().collect();
        own.sort_by_key(|leak| leak["kind"].as_str().unwrap().to_owned());
        own
    }
}

fn unknown_of(seen: &Value) -> Option<String> {
    let blockers = seen["blockers"].as_array()?;
    let found = blockers.iter().find(|blocker| blocker["code"] == "substrate_unknown")?;
    Some(found["message"].as_str()?.to_owned())
}

fn kinds(leaks: &[Value]) -> Vec<&str> {
    leaks.iter().map(|leak| leak["kind"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_removed_by_half_leads_out_in_both_ways() {
    for mut plane in ControlPlane::each("a_directory_removed_by_half").await {
        plane.set(&["--lease", "3s", "--reconcile-interval", "1s"]);
        plane.start().await;
        let cleared = plane.declare("cleared", 0).await;
        let given_up = plane.declare("given-up", 0).await;
        for id in [&cleared, &given_up] {
            plane.wait_for_phase(id, "Ready").await;
        }
        let (status, problem) = plane.abandon(&given_up, "given-up").await;
        assert_eq!((status, &problem["code"]), (409, &json!("not_abandonable")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("resource delete"), "{problem}");
        for id in [&cleared, &given_up] {
            fs::remove_file(plane.node_directory(id).await.join("composite.json")).unwrap();
            plane.delete(id).await;
        }

        // The message says how to finish what somebody began.
        let directory = plane.node_directory(&cleared).await;
        let message = plane.wait_unreadable(&cleared).await;
        let remedy = format!("remove the whole directory {}", directory.display());
        assert!(message.contains(&remedy), "{message}");
        fs::remove_dir_all(&directory).unwrap();
        let proven = |seen: &Value| seen["attempt"]["absence_proven_at"].is_string();
        let gone = plane.wait_for(&cleared, "proven gone", proven).await;
        assert_eq!(gone["attempt"]["abandoned_at"], Value::Null, "{gone}");

        // Or a person gives up, by typing its handle.
        plane.wait_unreadable(&given_up).await;
        let (status, problem) = plane.abandon(&given_up, "cleared").await;
        assert_eq!((status, &problem["details"]["field"]), (400, &json!("confirm")), "{problem}");
        let say = |arguments: &[&str]| {
            let mut command = binary();
            command.env("SLIPWAY_KEY", KEY);
            command.args(["resource", "abandon", "given-up", "--reason", "broken disk"]);
            command.args(arguments).args(["--server", &plane.url()]).output().unwrap()
        };
        let unasked = say(&[]);
        assert!(!unasked.status.success(), "{unasked:?}");
        assert!(String::from_utf8_lossy(&unasked.stderr).contains("--confirm"), "{unasked:?}");
        let abandoned = say(&["--confirm", "given-up"]);
        assert!(abandoned.status.success(), "{abandoned:?}");

        let gone = plane.resource(&given_up).await;
        assert_eq!((&gone["phase"], &gone["blockers"]), (&json!("Deleted"), &json!([])), "{gone}");
        assert!(gone["attempt"]["abandoned_at"].is_string(), "{gone}");
        assert_eq!(gone["attempt"]["absence_proven_at"], Value::Null, "{gone}");
        let (status, again) = plane.abandon(&given_up, "given-up").await;
        assert_eq!((status, &again["attempt"]), (200, &gone["attempt"]), "{again}");
        let leaks = plane.leaks_of(&gone).await;
        assert_eq!(kinds(&leaks), ["abandoned_composite"], "{leaks:?}");
        assert_eq!(leaks[0]["name"], gone["attempt"]["xr_name"], "{leaks:?}");
        assert!(leaks[0]["uid"].is_string(), "the last that was observed: {leaks:?}");

        let explained = plane.get(&format!("/api/v1/explain/resource/{given_up}")).await;
        assert!(explained["next"].as_str().unwrap().contains("abandoned"), "{explained}");
        let deletion = gone["deletion_id"].as_str().unwrap();
        let explained = plane.get(&format!("/api/v1/explain/deletion/{deletion}")).await;
        assert!(explained["parts"].to_string().contains("not proven gone"), "{explained}");
        let audited = plane.get("/api/v1/audit?verb=resource.abandon").await;
        assert_eq!(audited[0]["details"]["abandoned"], true, "{audited}");
        assert_eq!(audited[0]["reason"], "broken disk", "{audited}");
        let marked = wait::until(TIMEOUT, "the event", async || {
            let events = plane.get("/api/v1/events?limit=500").await;
            let of = |event: &&Value| {
                event["aggregate_id"] == gone["attempt"]["id"]
                    && event["type"] == "broker.ProvisionedResourceDeleted"
            };
            events.as_array().unwrap().iter().find(of).cloned()
        })
        .await;
        assert_eq!(marked["abandoned"], true, "{marked}");
        assert!(!marked["payload"].to_string().contains("bandoned"), "{marked}");

        // Nobody can read the object, so a person's word ends the record.
        let path = format!("/api/v1/leaks/{}/resolve", leaks[0]["id"].as_str().unwrap());
        let body = json!({ "reason": "the disk was shredded" });
        let (status, resolved) = plane.call(Method::POST, &path, Some(body)).await;
        assert_eq!((status, &resolved["state"]), (200, &json!("resolved")), "{resolved}");
        plane.stop().await;
    }
}

/// The root goes with a registered node, and comes back later: the attempt stays Deleted,
/// and what is found there is removed.
#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_is_gone_is_abandoned_and_cleared_when_it_comes_back() {
    for mut plane in ControlPlane::each("a_root_that_is_gone").await {
        plane.set(&["--lease", "3s", "--reconcile-interval", "1s", "--orphan-interval", "1s"]);
        plane.start().await;
        let id = plane.declare("web-1", 0).await;
        let ready = plane.wait_for_phase(&id, "Ready").await;
        let (root, aside) = (plane.substrate_root(), plane.data_dir().join("aside"));
        fs::rename(&root, &aside).unwrap();
        plane.wait_unreadable(&id).await;
        plane.delete(&id).await;
        plane.wait_unreadable(&id).await;
        let (status, gone) = plane.abandon(&id, "web-1").await;
        assert_eq!((status, &gone["phase"]), (200, &json!("Deleted")), "{gone}");
        let node = &gone["node"];
        assert_eq!(node["id"], ready["node"]["id"], "{gone}");
        assert!(node["deregistered_at"].is_string(), "{gone}");
        let registered = gone["node"]["deregistered_how"] == "forced";
        let leaks = plane.leaks_of(&gone).await;
        let all = ["abandoned_composite", "abandoned_node"];
        assert_eq!(kinds(&leaks), &all[..1 + usize::from(registered)], "{leaks:?}");

        fs::rename(&aside, &root).unwrap();
        let back = wait::until(TIMEOUT, "what is left to be removed", async || {
            let seen = plane.resource(&id).await;
            let proven = seen["attempt"]["absence_proven_at"].is_string();
            if proven { Ok(seen) } else { Err(format!("{seen}\n{}", plane.log_tail())) }
        })
        .await;
        assert_eq!(back["phase"], "Deleted", "{back}");
        assert_eq!(back["attempt"]["abandoned_at"], gone["attempt"]["abandoned_at"]);
        assert_eq!(plane.leaks_of(&gone).await, Vec::<Value>::new());
        assert!(plane.agents().is_empty());
        plane.assert_each_event_once(&id, &["Requested", "Ready", "Deleting", "Deleted"]).await;
        plane.stop().await;
    }
}
