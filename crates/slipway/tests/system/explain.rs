//! Every blocker code, produced on a real control plane, and what `slipway
//! explain` prints about it: ids, times, paths and processes masked.
//!
//! Few control planes, each with several resources at once, so that the waits
//! overlap. SQLite, because the tests corrupt rows by hand.

use std::collections::BTreeSet;
use std::path::Path;

use data_encoding::BASE64;
use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::process::{Signal, send_signal};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT, client};
use crate::tenants::{made, profile};

impl ControlPlane {
    /// The deletion of a resource that somebody protected during its grace.
    async fn refused_deletion(&self, id: &str) -> String {
        let path = format!("/api/v1/resources/{id}?reason=test&grace=3s");
        let (status, scheduled) = self.call(Method::DELETE, &path, None).await;
        assert_eq!(status, 202, "{scheduled}");
        let protection = format!("/api/v1/protections/resource/{id}");
        let reason = Some(json!({ "reason": "holds the books" }));
        let (status, protected) = self.call(Method::PUT, &protection, reason).await;
        assert_eq!(status, 200, "{protected}");
        let deletion = scheduled["id"].as_str().unwrap().to_owned();
        wait::until(TIMEOUT, "the refusal to be shown", async || {
            let found = self.get(&format!("/api/v1/explain/deletion/{deletion}")).await;
            let shown = found["blockers"][0]["code"] == "deletion_refused";
            if shown { Ok(()) } else { Err(found.to_string()) }
        })
        .await;
        deletion
    }

    /// The deletion of a cloud of which nothing is kept, while its credential is.
    async fn withheld_purge(&self) -> String {
        let made = async |path: &str, body: Value| {
            let (status, made) = self.call(Method::POST, path, Some(body)).await;
            assert_eq!(status, 201, "{made}");
            made["id"].as_str().unwrap().to_owned()
        };
        made("/api/v1/clouds", json!({ "name": "berlin", "provider": "p" })).await;
        let credential = json!({ "cloud": "berlin", "name": "kept" });
        let credential = made("/api/v1/credentials", credential).await;
        let set = ["deletion", "settings", "set", "--kind", "cloud", "--retention", "0s"];
        self.says(&set);
        let gone = async |path: &str| {
            let (status, gone) = self.call(Method::DELETE, path, None).await;
            assert_eq!(status, 200, "{gone}");
            gone["id"].as_str().unwrap().to_owned()
        };
        gone(&format!("/api/v1/credentials/{credential}")).await;
        let deletion = gone("/api/v1/clouds/berlin").await;
        wait::until(TIMEOUT, "the reason to be shown", async || {
            let found = self.get(&format!("/api/v1/explain/deletion/{deletion}")).await;
            let shown = found["blockers"][0]["code"] == "purge_withheld";
            if shown { Ok(()) } else { Err(found.to_string()) }
        })
        .await;
        deletion
    }

    async fn execute(&self, statements: &str) {
        use sqlx::Connection as _;
        let url = format!("sqlite:{}", self.data_dir().join("slipway.db").display());
        let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
        let statements = sqlx::AssertSqlSafe(statements.to_owned());
        sqlx::raw_sql(statements).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// A project of its own, placed on this cluster; returns its id.
    async fn project_on(&self, name: &str, cluster: &str) -> String {
        let make = async |method: Method, path: &str, body: Value| {
            let (status, made) = self.call(method, path, Some(body)).await;
            assert!((200..300).contains(&status), "{path}: {made}");
            made
        };
        let project = make(Method::POST, "/api/v1/projects", json!({ "name": name })).await;
        let credentials = self.get("/api/v1/credentials").await;
        let credential = credentials[0]["id"].as_str().unwrap();
        let path = format!("/api/v1/projects/{name}/credentials/{credential}");
        make(Method::PUT, &path, Value::Null).await;
        let path = format!("/api/v1/projects/{name}/cluster");
        make(Method::PUT, &path, json!({ "cluster": cluster })).await;
        project["id"].as_str().unwrap().to_owned()
    }

    async fn declare_in(&self, project: &str, handle: &str) -> String {
        let body = json!({ "handle": handle, "blueprint": "local-node", "project": project });
        let (status, body) = self.call(Method::POST, "/api/v1/resources", Some(body)).await;
        assert_eq!(status, 202, "{body}");
        body["id"].as_str().unwrap().to_owned()
    }

    async fn attempt(&self, id: &str) -> String {
        self.resource(id).await["attempt"]["id"].as_str().unwrap().replace('-', "")
    }

    /// Kills the agent of a resource and makes sure that it cannot start again.
    async fn break_agent(&self, id: &str) {
        let (agent, directory) = (self.agent(id).await, self.node_directory(id).await);
        std::fs::remove_dir_all(directory.join("state")).unwrap();
        write(&directory.join("state"), "in the way");
        send_signal(agent.pid, Signal::Kill).unwrap();
    }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

/// Long deadlines, except that of a drain.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_stuck_says_why() {
    let mut plane = ControlPlane::new(None);
    plane.set(&["--lease", "3s", "--reconcile-interval", "1s", "--orphan-after", "10m"]);
    plane.start().await;

    // A cluster without a replica that serves it.
    let elsewhere = json!({ "name": "elsewhere", "engine": "local" });
    let (status, made) = plane.call(Method::POST, "/api/v1/clusters", Some(elsewhere)).await;
    assert_eq!(status, 201, "{made}");
    plane.project_on("far", "elsewhere").await;
    let unserved = plane.declare_in("far", "unserved").await;

    // A namespace that is not Ready, and values that no version accepts.
    let shop = plane.project_on("shop", "local").await.replace('-', "");
    plane
        .execute(&format!(
            "UPDATE cluster_assignments SET namespace_phase = 'Degraded' WHERE project_id = x'{shop}'"
        ))
        .await;
    let waiting = plane.declare_in("shop", "waiting").await;
    let invalid = plane.declare_in("shop", "invalid").await;
    let attempt = plane.attempt(&invalid).await;
    plane
        .execute(&format!(
            "UPDATE provisioned_resources SET parameter_values = '{{\"busy_seconds\":\"soon\"}}' \
             WHERE id = x'{attempt}'"
        ))
        .await;

    // A namespace whose folder is a dangling link.
    let files = plane.project_on("files", "local").await;
    let folder = plane.substrate_root().join(format!("slipway-project-{files}"));
    std::os::unix::fs::symlink("nowhere", &folder).unwrap();
    let refused = plane.declare_in("files", "refused").await;

    let mut ready = Vec::new();
    for handle in
        ["unreadable", "terminating", "left", "draining", "undrained", "spoiled", "faulty"]
    {
        ready.push(plane.declare(handle, 0).await);
    }
    for id in &ready {
        plane.wait_for_phase(id, "Ready").await;
    }
    let [unreadable, terminating, left, draining, undrained, spoiled, faulty] = &ready[..] else {
        unreachable!("seven were declared");
    };
    write(&plane.node_directory(unreadable).await.join("composite.json"), "not a document");
    // It is asked to drain before its substrate is released, and cannot answer.
    send_signal(plane.agent(terminating).await.pid, Signal::Stop).unwrap();
    write(&plane.node_directory(terminating).await.join("terminating"), "");

    let state = plane.node_directory(left).await.join("state/identity.json");
    let identity: Value = serde_json::from_slice(&std::fs::read(state).unwrap()).unwrap();
    let path = format!("/v1/nodes/{}/deregister", identity["node_id"].as_str().unwrap());
    let leave = client()
        .post(format!("{}{path}", plane.url()))
        .bearer_auth(identity["node_secret_key"].as_str().unwrap());
    assert_eq!(leave.send().await.unwrap().status().as_u16(), 204);

    // A registry that refuses the drain.
    let attempt = plane.attempt(undrained).await;
    plane
        .execute(&format!(
            "CREATE TRIGGER refuse_drain BEFORE UPDATE OF drain_id ON nodes \
             WHEN NEW.provisioned_resource_id = x'{attempt}' AND NEW.drain_id IS NOT NULL \
             BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
        ))
        .await;
    plane.delete(undrained).await;

    send_signal(plane.agent(draining).await.pid, Signal::Stop).unwrap();
    plane.delete(draining).await;

    let attempt = plane.attempt(spoiled).await;
    // A row cannot have a requested deletion and be Ready.
    plane
        .execute(&format!(
            "UPDATE provisioned_resources SET deletion_requested_at = created_at, due_at = 1 \
             WHERE id = x'{attempt}'"
        ))
        .await;

    // A database that refuses the transition that one resource needs.
    let attempt = plane.attempt(faulty).await;
    plane
        .execute(&format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON state_changes \
             WHEN NEW.subject_id = x'{attempt}' \
             BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
        ))
        .await;
    plane.break_agent(faulty).await;

    for (id, code) in [
        (&waiting, "namespace_not_ready"),
        (&invalid, "parameter_values_invalid"),
        (&refused, "apply_failed"),
        (unreadable, "substrate_unknown"),
        (terminating, "substrate_terminating"),
        (left, "node_left"),
        (draining, "node_not_draining"),
        (undrained, "node_deregistration_failed"),
        (spoiled, "row_invalid"),
        (faulty, "internal_error"),
        (&unserved, "cluster_not_served"),
    ] {
        insta::assert_snapshot!(code, plane.explained(id, &[code]).await);
    }
    // No loop can record it, and it is listed and counted like any other.
    let listed = plane.get("/api/v1/resources?blocked=cluster_not_served").await;
    let mut found = listed.as_array().unwrap().iter().filter(|one| one["id"] == *unserved);
    let found = found.next().unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(found["blockers"][0]["code"], "cluster_not_served", "{found}");
    let counted = plane.get("/api/v1/status").await;
    assert!(counted["blockers"]["cluster_not_served"].as_u64() > Some(0), "{counted}");
    // Its substrate was left alone, and once the seam is repaired the drain goes on.
    assert!(plane.node_directory(undrained).await.exists());
    plane.execute("DROP TRIGGER refuse_drain").await;
    let gone = plane.wait_for_phase(undrained, "Deleted").await;
    assert_eq!(gone["blockers"], json!([]), "{gone}");
    insta::assert_snapshot!("a_project", plane.says(&["explain", "project", "files"]));
    insta::assert_snapshot!("a_cluster", plane.says(&["explain", "cluster", "elsewhere"]));
    let resource = plane.resource(draining).await;
    let deletion = resource["deletion_id"].as_str().unwrap();
    insta::assert_snapshot!("a_deletion", plane.says(&["explain", "deletion", deletion]));
    let refused = plane.refused_deletion(left).await;
    insta::assert_snapshot!("deletion_refused", plane.says(&["explain", "deletion", &refused]));
    let withheld = plane.withheld_purge().await;
    insta::assert_snapshot!("purge_withheld", plane.says(&["explain", "deletion", &withheld]));
    let node = resource["node"]["id"].as_str().unwrap();
    insta::assert_snapshot!("a_node", plane.says(&["explain", "node", node]));
    let tokens = plane.get(&format!("/api/v1/resources/{draining}/tokens")).await;
    let token = tokens[0]["token_id"].as_str().unwrap();
    insta::assert_snapshot!("a_token", plane.says(&["explain", "token", token]));
    let listed = plane.says(&["resource", "list", "--blocked", "node_left"]);
    assert!(listed.contains("node_left") && !listed.contains("refused"), "{listed}");

    plane.says(&["freeze", "--for", "1h", "--reason", "a storm", "--wait"]);
    let frozen = plane.declare("frozen", 0).await;
    insta::assert_snapshot!("frozen", plane.explained(&frozen, &["frozen"]).await);
    let path = format!("/api/v1/resources/{frozen}?reason=test&grace=1s");
    let (status, scheduled) = plane.call(Method::DELETE, &path, None).await;
    assert_eq!(status, 202, "{scheduled}");
    let explained = plane.get(&format!("/api/v1/explain/resource/{frozen}")).await;
    let cancel = format!("slipway deletion cancel {}", scheduled["id"].as_str().unwrap());
    assert!(explained["notice"].as_str().unwrap().contains(&cancel), "{explained}");
    let path = format!("/api/v1/explain/deletion/{}", scheduled["id"].as_str().unwrap());
    wait::until(TIMEOUT, "the freeze to be shown", async || {
        let found = plane.get(&path).await;
        let shown = found["blockers"][0]["code"] == "frozen";
        if shown { Ok(()) } else { Err(found.to_string()) }
    })
    .await;
}

/// A substrate that was taken down cannot be moved away: the folder for that is
/// a dangling link.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_removed_says_why() {
    let mut plane = ControlPlane::new(None);
    plane.set(&["--reconcile-interval", "1s", "--deprovisioning-deadline", "3s"]);
    plane.start().await;
    std::os::unix::fs::symlink("nowhere", plane.substrate_root().join(".gone")).unwrap();
    let id = plane.declare("stays", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    plane.delete(&id).await;
    let codes = ["delete_failed", "deprovisioning_overdue"];
    insta::assert_snapshot!("delete_failed", plane.explained(&id, &codes).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_too_long_says_so() {
    let mut plane = ControlPlane::new(None);
    plane.set(&["--reconcile-interval", "1s"]);
    plane.set(&["--pending-deadline", "6s", "--provisioning-deadline", "1s"]);
    plane.start().await;
    let shop = plane.project_on("shop", "local").await.replace('-', "");
    plane
        .execute(&format!(
            "UPDATE cluster_assignments SET namespace_phase = 'Pending' WHERE project_id = x'{shop}'"
        ))
        .await;
    let waiting = plane.declare_in("shop", "waiting").await;
    let broken = plane.declare("broken", 0).await;
    let flapping = plane.declare("flapping", 0).await;
    plane.wait_for_phase(&broken, "Ready").await;
    plane.break_agent(&broken).await;
    // It lost Ready, and does not come up again. At once: an observation may find the agent
    // between its start and its end, and then it is also `unsettled` some seconds later.
    let codes = ["provisioning_overdue"];
    insta::assert_snapshot!("provisioning_overdue", plane.explained(&broken, &codes).await);
    plane.wait_for_phase(&flapping, "Ready").await;

    // Its agent dies again and again, as soon as it is Ready.
    let name = plane.resource(&flapping).await["attempt"]["xr_name"].as_str().unwrap().to_owned();
    wait::until(TIMEOUT, "the flapping to be noticed", async || {
        let seen = plane.resource(&flapping).await;
        if seen["phase"] == "Ready" {
            for agent in plane.agents_of(&name) {
                // It may have ended by itself.
                let _gone = send_signal(agent.pid, Signal::Kill);
            }
        }
        let mut blockers = seen["blockers"].as_array().unwrap().iter();
        if blockers.any(|found| found["code"] == "unsettled") {
            Ok(())
        } else {
            Err(seen.to_string())
        }
    })
    .await;
    plane.wait_for_phase(&flapping, "Ready").await;
    insta::assert_snapshot!("unsettled", plane.explained(&flapping, &["unsettled"]).await);

    let codes = ["namespace_not_ready", "pending_overdue"];
    insta::assert_snapshot!("pending_overdue", plane.explained(&waiting, &codes).await);
}

/// The agents get an address at which nothing listens.
#[tokio::test(flavor = "multi_thread")]
async fn what_never_enrols_says_why() {
    let mut plane = ControlPlane::new(None);
    plane.set(&["--public-url", "http://127.0.0.1:9"]);
    plane.set(&["--reconcile-interval", "1s", "--enrolling-deadline", "1s"]);
    plane.set(&["--first-heartbeat-deadline", "1s"]);
    plane.start().await;
    let alone = plane.declare("alone", 0).await;
    let mute = plane.declare("mute", 0).await;
    let capped = plane.declare("capped", 0).await;
    plane.wait_for_phase(&capped, "Enrolling").await;
    let attempt = plane.attempt(&capped).await;
    plane
        .execute(&format!(
            "UPDATE bootstrap_tokens SET expires_at = issued_at + 1, hard_expires_at = issued_at + 1 \
             WHERE provisioned_resource_id = x'{attempt}'"
        ))
        .await;
    // It enrols and is never heard of again.
    plane.wait_for_phase(&mute, "Enrolling").await;
    let file = plane.node_directory(&mute).await.join("rootfs/etc/plexd/bootstrap-token");
    let token = wait::until(TIMEOUT, "the token to be in place", async || {
        std::fs::read_to_string(&file).map_err(|error| error.to_string())
    })
    .await;
    let body = json!({ "token": token.trim(), "public_key": BASE64.encode(&[7; 32]) });
    let register = client().post(format!("{}/v1/register", plane.url())).json(&body);
    assert_eq!(register.send().await.unwrap().status().as_u16(), 201);
    insta::assert_snapshot!("node_silent", plane.explained(&mute, &["node_silent"]).await);

    let overdue = ["enrolling_overdue"];
    insta::assert_snapshot!("enrolling_overdue", plane.explained(&alone, &overdue).await);
    let codes = ["enrolling_overdue", "token_cap_reached"];
    insta::assert_snapshot!("token_cap_reached", plane.explained(&capped, &codes).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_persons_word_says_so() {
    let mut plane = ControlPlane::new(None);
    plane.set(&["--reconcile-interval", "1s"]);
    plane.start().await;
    let cluster = json!({ "name": "by-hand", "engine": "manual" });
    let (status, made) = plane.call(Method::POST, "/api/v1/clusters", Some(cluster)).await;
    assert_eq!(status, 201, "{made}");
    plane.project_on("metal", "by-hand").await;
    let body = json!({ "handle": "rack-7", "blueprint": "manual-node", "project": "metal" });
    let (status, made) = plane.call(Method::POST, "/api/v1/resources", Some(body)).await;
    assert_eq!(status, 202, "{made}");
    let id = made["id"].as_str().unwrap();
    plane.wait_for_phase(id, "Enrolling").await;
    plane.delete(id).await;
    let code = "machine_not_confirmed_gone";
    insta::assert_snapshot!(code, plane.explained(id, &[code]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_observed_says_so() {
    let mut plane = ControlPlane::new(None);
    plane.set(&["--observe-only"]);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    insta::assert_snapshot!("observe_only", plane.explained(&id, &["observe_only"]).await);
}

/// Three tenants: one whose target cannot be found, one whose migrations cannot, and one whose
/// target is ahead.
#[tokio::test(flavor = "multi_thread")]
async fn what_blocks_tenants_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let seed = "INSERT INTO note (text) VALUES ('hello')";
    for name in ["lost", "moved", "ahead"] {
        let mut settings = profile(folder.path(), name, seed);
        settings["steps"] = json!([]);
        made(&plane, "/api/v1/tenant-profiles", &json!({ "name": name, "settings": settings }))
            .await;
    }
    std::fs::remove_file(folder.path().join("lost/target")).unwrap();
    for name in ["lost", "moved", "ahead"] {
        let body = json!({ "name": name, "profile": name });
        made(&plane, "/api/v1/projects/default/tenants", &body).await;
    }
    for name in ["moved", "ahead"] {
        wait::until(TIMEOUT, "a ready tenant", async || {
            plane.get(&format!("/api/v1/tenants/{name}")).await["state"] == "ready"
        })
        .await;
    }
    std::fs::remove_dir_all(folder.path().join("moved/migrations")).unwrap();
    let note = folder.path().join("ahead/tenants/.slipway/t_ahead.json");
    let mut noted: Value = serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
    noted["fence"]["work"] = json!(1_000);
    std::fs::write(&note, noted.to_string()).unwrap();
    let path = "/api/v1/tenant-profiles/moved/migrate";
    assert_eq!(plane.call(Method::POST, path, Some(json!({}))).await.0, 202);
    let ahead = plane.get("/api/v1/tenants/ahead").await["id"].as_str().unwrap().to_owned();
    assert_eq!(plane.call(Method::DELETE, "/api/v1/tenants/ahead", None).await.0, 200);
    for (name, code) in [
        ("lost", "tenant_step_failing"),
        ("moved", "tenant_task_failing"),
        (ahead.as_str(), "tenant_waiting"),
    ] {
        wait::until(TIMEOUT, code, async || {
            let found = plane.get(&format!("/api/v1/explain/tenant/{name}")).await;
            let is_shown = found["blockers"][0]["code"] == code;
            if is_shown { Ok(()) } else { Err(format!("{found}\n{}", plane.log_tail())) }
        })
        .await;
        let said = plane.says(&["explain", "tenant", name]);
        let said = said.replace(&folder.path().display().to_string(), "<folder>");
        let blockers = said.lines().skip_while(|line| *line != "Blockers:");
        // How often it was tried depends on the time.
        let blockers = blockers.take_while(|line| !line.is_empty());
        let blockers: Vec<_> = blockers.filter(|line| !line.contains("failures:")).collect();
        insta::assert_snapshot!(code, blockers.join("\n"));
    }
    // Nobody noticed a restore, and one decision is enough all the same.
    let path = format!("/api/v1/tenants/{ahead}/resume");
    let body = Some(json!({ "reason": "looked" }));
    assert_eq!(plane.call(Method::POST, &path, body).await.0, 202);
    wait::until(TIMEOUT, "a closed tenant", async || {
        plane.get(&format!("/api/v1/tenants/{ahead}?show_deleted=true")).await["closed"] == true
    })
    .await;
}

/// A server on its own whose name is taken, and a group that depends on it.
#[tokio::test(flavor = "multi_thread")]
async fn what_holds_up_a_workspace_is_explained() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    plane.declare("edge", 0).await;
    let template = json!({ "hostname_pattern": "worker-{n}" });
    let spec = json!({
        "servers": [{ "name": "edge", "role": "LoadBalancer", "blueprint": "local-node" }],
        "groups": [{
            "name": "workers", "role": "Worker", "count": 1, "blueprint": "local-node",
            "depends_on": ["edge"], "scale": { "min": 0, "max": 1, "template": template },
        }],
    });
    let document = json!({
        "apiVersion": "slipway.dev/v1", "kind": "Workspace",
        "metadata": { "name": "prod", "project": "default" }, "spec": spec,
    });
    let body = json!({ "source": "shop", "documents": [{ "document": document }] });
    let (status, applied) = plane.call(Method::POST, "/api/v1/apply", Some(body)).await;
    assert_eq!((status, &applied[0]["outcome"]), (200, &json!("created")), "{applied}");
    wait::until(TIMEOUT, "a workspace that is held up", async || {
        let found = plane.get("/api/v1/workspaces/prod").await;
        found["blockers"][0]["code"] == "workspace_blocked"
    })
    .await;
    let server = plane.get("/api/v1/servers?workspace=prod").await[0]["id"].clone();
    let server = server.as_str().unwrap();
    let said = plane.explained(server, &["waiting_for_dependency"]).await;
    insta::assert_snapshot!("waiting_for_dependency", said);
    let said = plane.says(&["workspace", "get", "prod"]);
    let blockers: Vec<_> = said.lines().skip_while(|line| *line != "Blockers:").collect();
    insta::assert_snapshot!("workspace_blocked", blockers.join("\n"));
}

/// The snapshots cover every code, and no unknown one.
#[test]
fn every_code_is_produced() {
    // The snapshots of codes that need a cluster are with the tests on Kubernetes.
    let folders = ["tests/system/snapshots", "tests/kube/snapshots"];
    let mut shown = BTreeSet::new();
    for entry in folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let blockers = text.lines().filter(|line| line.contains(" since <time>, for the "));
        shown.extend(blockers.map(|line| line.split_whitespace().next().unwrap().to_owned()));
    }
    let codes = slipway_core::blocker::BlockerCode::ALL;
    let codes: BTreeSet<_> = codes.iter().map(ToString::to_string).collect();
    assert_eq!(shown, codes);
}
