//! A `slipway up` process with a folder of kubeconfigs.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use slipway_testkit::ports::lasting_loopback_port;
use slipway_testkit::process::{Signal, Spawned};
use slipway_testkit::wait;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const KEY: &str = "slipway_testtest_abcdefghijkmnopqrstuvwxyz";

pub(crate) struct Plane {
    folder: tempfile::TempDir,
    url: String,
    process: Spawned,
    client: reqwest::Client,
}

impl Plane {
    pub(crate) fn start() -> Self {
        // The second test of a process finds it installed, which is as good.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("kubeconfigs")).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let listen = format!("127.0.0.1:{}", lasting_loopback_port().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_slipway"));
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("SLIPWAY_ADMIN_KEY", KEY)
            .args(["up", "--listen", &listen, "--reconcile-interval", "2s", "--data-dir"])
            .arg(folder.path().join("data"))
            .arg("--kubeconfig-dir")
            .arg(folder.path().join("kubeconfigs"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let process = Spawned::start(&mut command).unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { folder, url: format!("http://{listen}"), process, client }
    }

    /// Where the file of a cluster has to be.
    pub(crate) fn kubeconfig(&self, name: &str) -> PathBuf {
        self.folder.path().join("kubeconfigs").join(name)
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let request = self.client.post(format!("{}/api/v1{path}", self.url)).json(body);
        answer(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, String> {
        answer(self.client.get(format!("{}{path}", self.url))).await
    }

    /// Waits until a loop over the resources of this cluster has looked.
    pub(crate) async fn wait_served(&self, cluster: &str) {
        let name = format!("resources/{cluster}");
        wait::until(PATIENCE, &format!("cluster {cluster} to be served"), async || {
            let loops = self.get("/api/v1/loops").await?;
            let found = loops.as_array().into_iter().flatten().find(|one| one["name"] == *name);
            let looked = found.is_some_and(|one| one["activations"].as_u64() > Some(0));
            if looked { Ok(()) } else { Err(format!("{loops}\n{}", self.log())) }
        })
        .await;
    }

    pub(crate) async fn stop(mut self) -> ExitStatus {
        self.process.signal(Signal::Terminate).unwrap();
        self.process.exit(PATIENCE).await.unwrap()
    }
}

async fn answer(request: reqwest::RequestBuilder) -> Result<Value, String> {
    let answer = request.bearer_auth(KEY).send().await.map_err(|error| error.to_string())?;
    let status = answer.status();
    let text = answer.text().await.map_err(|error| error.to_string())?;
    if !status.is_success() {
        return Err(format!("{status}: {text}"));
    }
    Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
