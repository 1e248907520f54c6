//! A real Kubernetes API through the public interface of the crate.
//!
//! Some tests need a process of their own to kill or to give another
//! environment. They start this same binary again with one test selected and
//! [`ROLE`] set; that test then plays the other role.

mod deploy;
mod fault_proxy;
mod faults;
mod missing_programs;
mod requests;

use std::process::{Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

const ROLE: &str = "SLIPWAY_TESTKIT_ROLE";
/// Seconds on an idle machine; the rest is for a busy one.
const TIMEOUT: Duration = Duration::from_secs(120);

/// This binary again, running only `test` in its other role.
fn mk_other_role(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this binary"));
    command.args(["--exact", test, "--nocapture"]).env(ROLE, "other").stdin(Stdio::null());
    command
}

fn plays_other_role() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// A client from a kubeconfig text, as tests of other crates pass it to a server.
async fn mk_client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    Client::try_from(config.expect("a usable kubeconfig")).expect("a client")
}

/// Applies a ConfigMap of the namespace `default` under a field manager.
async fn apply(client: &Client, manager: &str, name: &str, value: &str) -> kube::Result<ConfigMap> {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name },
        "data": { "key": value },
    });
    let api = Api::<ConfigMap>::namespaced(client.clone(), "default");
    api.patch(name, &PatchParams::apply(manager), &Patch::Apply(&object)).await
}

async fn value_of(client: &Client, name: &str) -> kube::Result<Option<String>> {
    let found = Api::<ConfigMap>::namespaced(client.clone(), "default").get_opt(name).await?;
    Ok(found.and_then(|found| found.data?.get("key").cloned()))
}
