//! Machines that somebody boots by hand: engine manual beside engine local, with the real
//! binary on each database.

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, KEY, binary, client};

/// Runs a command; its standard output, or what it says instead.
fn run(plane: &ControlPlane, command: &str) -> Result<String, String> {
    let mut program = binary();
    program.env("SLIPWAY_KEY", KEY).args(command.split_whitespace());
    let output = program.args(["--server", &plane.url()]).output().unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

fn declare(plane: &ControlPlane, handle: &str, more: &str) -> String {
    let command = format!(
        "resource create --project metal --handle {handle} --blueprint manual-node -o json {more}"
    );
    let made: Value = serde_json::from_str(&run(plane, &command).unwrap()).unwrap();
    made["id"].as_str().unwrap().to_owned()
}

/// The token in the variables that a machine is booted with.
fn token(plane: &ControlPlane, handle: &str) -> String {
    let shown = run(plane, &format!("resource enrolment {handle} --project metal --format env"));
    let shown = shown.unwrap();
    assert!(shown.contains(&format!("PLEXD_RESOURCE_HANDLE={handle}\n")), "{shown}");
    assert!(shown.contains(&format!("PLEXD_API={}\n", plane.url())), "{shown}");
    let line = shown.lines().find_map(|line| line.strip_prefix("PLEXD_BOOTSTRAP_TOKEN="));
    line.unwrap().to_owned()
}

async fn register(plane: &ControlPlane, token: &str, key: u8) -> (u16, Value) {
    let body = json!({
        "token": token, "public_key": BASE64.encode(&[key; 32]), "capabilities": ["drain"],
    });
    let request = client().post(format!("{}/v1/register", plane.url())).json(&body);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// Heartbeats until it is asked to drain, then says that it is done.
async fn drain(plane: &ControlPlane, id: &str, node: &Value) {
    let text = |name: &str| node[name].as_str().unwrap();
    let ask = async |verb: &str, body: Value| {
        let url = format!("{}/v1/nodes/{}/{verb}", plane.url(), text("node_id"));
        client().post(url).bearer_auth(text("node_secret_key")).json(&body).send().await.unwrap()
    };
    let asked = |seen: &Value| seen["node"]["drain_requested_at"].is_string();
    plane.wait_for(id, "asked to drain", asked).await;
    let heartbeat: Value = ask("heartbeat", json!({})).await.json().await.unwrap();
    let done = json!({ "drain_id": heartbeat["drain"]["drain_id"] });
    assert_eq!(ask("drain", done).await.status().as_u16(), 204);
}

fn blocked_by(code: &'static str) -> impl Fn(&Value) -> bool {
    move |seen| seen["blockers"].as_array().unwrap().iter().any(|one| one["code"] == code)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_somebody_boots_comes_and_goes_by_hand() {
    for mut plane in ControlPlane::each("a_machine_that_somebody_boots").await {
        plane.set(&["--reconcile-interval", "1s", "--lease", "3s"]);
        plane.start().await;
        // Beside engine local, in the same control plane.
        let local = plane.declare("web-1", 0).await;
        for command in [
            "project create metal",
            "credential assign local --project metal",
            "cluster create by-hand --engine manual",
            "cluster assign by-hand --project metal",
        ] {
            run(&plane, command).unwrap();
        }
        let id = declare(&plane, "rack-7", "");
        let (first, second) = (token(&plane, "rack-7"), token(&plane, "rack-7"));
        let waiting = plane.wait_for_phase(&id, "Enrolling").await;
        assert_eq!(waiting["engine"], "manual", "{waiting}");
        let (status, refused) = register(&plane, &first, 1).await;
        assert_eq!((status, &refused["code"]), (403, &json!("token_revoked")));
        let (status, node) = register(&plane, &second, 1).await;
        assert_eq!(status, 201, "{node}");
        plane.wait_for_phase(&id, "Ready").await;
        let refused = run(&plane, "resource enrolment rack-7 --project metal").unwrap_err();
        assert!(refused.contains("not_enrolling"), "{refused}");
        let confirm = "resource confirm-gone rack-7 --project metal --reason test";
        let refused = run(&plane, confirm).unwrap_err();
        assert!(refused.contains("nothing_to_confirm"), "{refused}");

        plane.delete(&id).await;
        drain(&plane, &id, &node).await;
        let held = blocked_by("machine_not_confirmed_gone");
        let held = plane.wait_for(&id, "held until somebody says so", held).await;
        assert_eq!(held["phase"], "Deprovisioning", "{held}");
        let command = &held["blockers"][0]["remedies"][0]["command"];
        let named = command.as_str().unwrap();
        assert!(named.starts_with("slipway resource confirm-gone"), "{held}");
        let explained = plane.get(&format!("/api/v1/resources/{id}/explain")).await;
        assert_eq!(explained["waiting_for"], "somebody to say that its machine is gone");
        run(&plane, confirm).unwrap();
        plane.wait_for_phase(&id, "Deleted").await;
        let proven = |seen: &Value| seen["attempt"]["absence_proven_at"].is_string();
        plane.wait_for(&id, "proven gone", proven).await;

        // Its node never drains; the machine burned.
        let id = declare(&plane, "rack-8", "");
        let (status, node) = register(&plane, &token(&plane, "rack-8"), 2).await;
        assert_eq!(status, 201, "{node}");
        plane.wait_for_phase(&id, "Ready").await;
        plane.delete(&id).await;
        // By its id: once the resource is Deleted, its handle is free for another one.
        let confirm = format!("resource confirm-gone {id} --reason burned");
        run(&plane, &confirm).unwrap();
        // What was answered is kept, and whoever did not hear the answer may say it again.
        plane.kill();
        plane.start().await;
        run(&plane, &confirm).unwrap();
        let gone = plane.wait_for_phase(&id, "Deleted").await;
        assert_eq!(gone["node"]["deregistered_how"], "substrate_absent", "{gone}");

        // Nobody has to say anything, nor did anybody boot it.
        let id = declare(&plane, "rack-9", "-p confirm_gone=false");
        let document = run(&plane, "resource enrolment rack-9 --project metal").unwrap();
        assert!(document.starts_with("#cloud-config\n"), "{document}");
        assert!(document.contains("/etc/systemd/system/plexd.service"), "{document}");
        plane.wait_for_phase(&id, "Enrolling").await;
        plane.delete(&id).await;
        plane.wait_for_phase(&id, "Deleted").await;

        plane.wait_for_phase(&local, "Ready").await;
        let refused = run(&plane, "resource confirm-gone web-1 --reason test").unwrap_err();
        assert!(refused.contains("nothing_to_confirm"), "{refused}");
        let found = run(&plane, "leaks find").unwrap();
        assert!(!found.contains("cannot"), "{found}");
        plane.stop().await;
    }
}
