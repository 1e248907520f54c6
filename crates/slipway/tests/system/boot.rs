//! What refuses the start, with a code and a remedy, and what does not.

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use crate::control_plane::{ControlPlane, binary, client};

fn run(command: &mut Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap()
}

fn refused(command: &mut Command, code: &str, names: &str) {
    let output = run(command);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{text}");
    assert!(text.contains(&format!("error[{code}]")), "expected {code}: {text}");
    assert!(text.contains(names), "expected it to name {names}: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_refused_before_anything_is_written() {
    let plane = ControlPlane::new(None);
    let port: u16 = plane.url().rsplit(':').next().unwrap().parse().unwrap();
    let _taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    refused(&mut plane.command(), "port_in_use", "--listen");
    assert!(!plane.data_dir().exists(), "nothing was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_in_use_is_refused() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let mut second = binary();
    second.args(["up", "--listen", "127.0.0.1:0", "--data-dir"]).arg(plane.data_dir());
    refused(&mut second, "data_directory_in_use", &plane.data_dir().display().to_string());
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_substrate_root_of_another_installation_is_refused() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    plane.stop().await;
    // On SQLite each has its own database, and so its own installation.
    let stranger = plane.beside();
    refused(&mut stranger.command(), "substrate_foreign", "--substrate-root");
}

#[test]
fn a_database_that_cannot_be_reached_is_named_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = binary();
    command
        .args(["up", "--listen", "127.0.0.1:0", "--database-timeout", "1s", "--data-dir"])
        .arg(folder.path().join("data"));
    // Nothing listens on port 1 of loopback.
    command.env("SLIPWAY_DATABASE_URL", "postgres://me:hunter2@127.0.0.1:1/slipway");
    let output = run(&mut command);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("error[database_unreachable]"), "{text}");
    assert!(text.contains("me@127.0.0.1:1/slipway") && !text.contains("hunter2"), "{text}");
}

#[test]
fn a_wrong_setting_is_named() {
    let up = |arguments: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = binary();
        command.arg("up").args(arguments).arg("--data-dir").arg(folder.path().join("data"));
        command
    };
    refused(&mut up(&["--reconcile-interval", "0s"]), "config_invalid", "reconcile_interval");
    refused(&mut up(&["--token-ttl", "1m"]), "config_invalid", "token_ttl");
    refused(&mut up(&["--database-url", "mysql://x"]), "database_url_invalid", "postgres://");
    refused(&mut up(&["--config", "/nonexistent.toml"]), "config_invalid", "/nonexistent.toml");
    let mut key = up(&["--listen", "127.0.0.1:0"]);
    key.env("SLIPWAY_ADMIN_KEY", "short");
    refused(&mut key, "invalid_input", "admin_key");
}

/// Not by permissions, which root ignores: a file is in the way of a folder.
#[test]
fn folders_that_cannot_be_written_are_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("file"), folder.path().join("data"));
    std::fs::write(&file, "").unwrap();
    let up = |arguments: &[&std::ffi::OsStr]| {
        let mut command = binary();
        command.args(["up", "--listen", "127.0.0.1:0"]).args(arguments);
        command
    };
    let below = file.join("below");
    refused(
        &mut up(&["--data-dir".as_ref(), below.as_ref()]),
        "data_directory_unusable",
        &below.display().to_string(),
    );
    let root =
        ["--data-dir".as_ref(), data.as_os_str(), "--substrate-root".as_ref(), below.as_ref()];
    refused(&mut up(&root), "folder_unusable", "substrate_root");
    assert!(!data.exists(), "nothing was made");
}

#[test]
fn a_typo_in_the_file_names_the_nearest_key_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("slipway.toml"), folder.path().join("data"));
    std::fs::write(&file, "lisetn = \"127.0.0.1:0\"\n").unwrap();
    let mut command = binary();
    command.args(["up", "--config"]).arg(&file).arg("--data-dir").arg(&data);
    refused(
        &mut command,
        "config_invalid",
        "line 1: `lisetn` is no setting; did you mean `listen`?",
    );
    assert!(!data.exists(), "nothing was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_metrics_answer_without_a_key() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let text = async |path: &str| {
        let response = client().get(format!("{}{path}", plane.url())).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    assert_eq!(text("/healthz").await.0, 200);
    let (status, ready) = text("/readyz").await;
    assert_eq!(status, 200, "{ready}");
    assert!(ready.contains("provisioning-broker-reconcile"), "{ready}");
    let (status, metrics) = text("/metrics").await;
    assert_eq!(status, 200);
    assert!(metrics.contains("# TYPE"), "{metrics}");
    // It listens on loopback, and nobody else can read its key file.
    use std::os::unix::fs::PermissionsExt;
    let mode = |file: &str| {
        std::fs::metadata(plane.data_dir().join(file)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("signing.pk8"), 0o600);
    assert!(plane.read("server.json").contains(&plane.url()));
    plane.stop().await;
}
