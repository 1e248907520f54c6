//! `slipway doctor` and `slipway config` with the real binary.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;
use slipway_testkit::postgres;

use crate::control_plane::{ControlPlane, KEY, binary};

/// The doctor's findings about a control plane, and its exit code.
fn inspect(plane: &ControlPlane, more: &[&str]) -> (i32, Value) {
    let mut command = binary();
    command.args(["doctor", "-o", "json", "--server", &plane.url(), "--data-dir"]);
    command.arg(plane.data_dir()).args(more).env("SLIPWAY_KEY", KEY);
    if let Some(url) = plane.database_url() {
        command.env("SLIPWAY_DATABASE_URL", url);
    }
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let findings = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    (output.status.code().unwrap(), findings)
}

fn status<'a>(findings: &'a Value, area: &str, check: &str) -> &'a str {
    let found = findings.as_array().unwrap().iter();
    let mut found = found.filter(|found| found["area"] == area && found["check"] == check);
    let found = found.next().unwrap_or_else(|| panic!("no {area} {check}: {findings}"));
    let status = found["status"].as_str().unwrap();
    assert_eq!(status != "ok", found["remedy"].is_string(), "{found}");
    status
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_looks_at_everything_with_and_without_a_server() {
    let mut plane = ControlPlane::new(None);
    // Nothing exists, and nothing is created.
    let (code, findings) = inspect(&plane, &[]);
    assert_eq!(status(&findings, "database", "reachable"), "ok");
    assert_eq!((code, status(&findings, "server", "reachable")), (8, "problem"), "{findings}");
    assert!(!plane.data_dir().exists(), "the doctor changes nothing");

    plane.start().await;
    plane.wait_until_ready().await;
    let (code, findings) = inspect(&plane, &[]);
    for (area, check) in [
        ("config", "settings"),
        ("database", "reachable"),
        ("database", "migrations"),
        ("database", "writable"),
        ("database", "durability"),
        ("disk", "data_directory"),
        ("disk", "permissions"),
        ("disk", "signing_key"),
        ("disk", "substrate_root"),
        ("server", "reachable"),
        ("server", "key"),
        ("server", "version"),
        ("clock", "database"),
        ("clock", "server"),
    ] {
        assert_eq!(status(&findings, area, check), "ok", "{area} {check}: {findings}");
    }
    assert_eq!(code, 0, "{findings}");
    plane.assert_works("web-1").await;

    let (code, findings) =
        inspect(&plane, &["--key", "slipway_testtest_nobody0000000000000000000"]);
    assert_eq!((code, status(&findings, "server", "key")), (8, "problem"), "{findings}");
    // The file wins over the environment, which has the right one.
    let file = plane.data_dir().join("of-nobody");
    std::fs::write(&file, "slipway_testtest_nobody0000000000000000000\n").unwrap();
    let (code, findings) = inspect(&plane, &["--key-file", file.to_str().unwrap()]);
    assert_eq!((code, status(&findings, "server", "key")), (8, "problem"), "{findings}");
    std::fs::remove_file(&file).unwrap();
    let (_, findings) = inspect(&plane, &["--key-file", file.to_str().unwrap()]);
    assert_eq!(status(&findings, "server", "key"), "problem", "{findings}");
    plane.stop().await;

    // Stopped, with everything still to be checked.
    let (code, findings) = inspect(&plane, &[]);
    assert_eq!((code, status(&findings, "server", "reachable")), (8, "problem"));
    assert_eq!(status(&findings, "database", "migrations"), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_names_what_is_wrong() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    plane.stop().await;
    let data = plane.data_dir();
    let mode = |name: &str, mode: u32| {
        let path = if name.is_empty() { data.clone() } else { data.join(name) };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("", 0o755);
    mode("signing.pk8", 0o644);
    let (_, findings) = inspect(&plane, &[]);
    assert_eq!(status(&findings, "disk", "data_directory"), "warning");
    assert_eq!(status(&findings, "disk", "permissions"), "warning");

    std::fs::write(data.join("signing.pk8"), "no key").unwrap();
    std::fs::write(data.join("slipway.db"), "no database, but long enough to be read").unwrap();
    let (code, findings) = inspect(&plane, &[]);
    assert_eq!((code, status(&findings, "disk", "signing_key")), (8, "problem"));
    assert_eq!(status(&findings, "database", "reachable"), "problem");

    let (code, findings) = inspect(&plane, &["--lease", "1s"]);
    assert_eq!((code, status(&findings, "config", "settings")), (8, "problem"));
    let unreachable = ["--database-url", "postgres://me:hunter2@127.0.0.1:1/x"];
    let (code, findings) =
        inspect(&plane, &[&unreachable[..], &["--database-timeout", "1s"]].concat());
    assert_eq!((code, status(&findings, "database", "reachable")), (8, "problem"));
    assert!(!findings.to_string().contains("hunter2"), "{findings}");
}

/// In a folder that nobody else enters too: files are copied and moved. The journals
/// are there because it was killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_others_can_read_is_named_and_narrowed_at_the_start() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let names = ["slipway.db", "slipway.db-wal", "slipway.db-shm"];
    let files = names.map(|name| plane.data_dir().join(name));
    let modes = || {
        let mode = |file| std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
        files.each_ref().map(mode)
    };
    assert_eq!(modes(), [0o600; 3], "as they are made");
    plane.kill();
    for file in &files {
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let (_, findings) = inspect(&plane, &[]);
    assert_eq!(status(&findings, "disk", "data_directory"), "ok", "{findings}");
    assert_eq!(status(&findings, "disk", "permissions"), "warning", "{findings}");
    let told = findings.to_string();
    assert!(files.iter().all(|file| told.contains(&*file.to_string_lossy())), "{told}");
    assert_eq!(modes(), [0o644; 3], "the doctor changes nothing");

    plane.start().await;
    assert_eq!(modes(), [0o600; 3]);
    let log = plane.log_text();
    for file in &files {
        let line = format!("now only its owner can file={} was=", file.display());
        assert_eq!(log.matches(&line).count(), 1, "{line}: {log}");
    }
    let (_, findings) = inspect(&plane, &[]);
    assert_eq!(status(&findings, "disk", "permissions"), "ok", "{findings}");
    plane.stop().await;
}

/// Not even after a crash: checkpointing the log into the database would be a write.
#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_leaves_a_database_as_it_is() {
    let files = |plane: &ControlPlane| {
        let found = std::fs::read_dir(plane.data_dir()).unwrap().map(Result::unwrap);
        let found =
            found.filter(|entry| entry.file_name().to_string_lossy().contains("slipway.db"));
        // The first process to open the log recreates its shared memory.
        let found = found.filter(|entry| !entry.file_name().to_string_lossy().ends_with("-shm"));
        found
            .map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    plane.kill();
    let before = files(&plane);
    assert!(before.len() > 1, "a log is left: {:?}", before.keys());
    let (_, findings) = inspect(&plane, &[]);
    assert_eq!(status(&findings, "database", "migrations"), "ok", "{findings}");
    assert!(files(&plane) == before, "after a crash");

    plane.start().await;
    plane.stop().await;
    let before = files(&plane);
    let (_, findings) = inspect(&plane, &[]);
    assert_eq!(status(&findings, "database", "migrations"), "ok", "{findings}");
    assert!(files(&plane) == before, "after a stop");

    // Like a copy by `VACUUM INTO`, with bytes 18 and 19 of the header: it is as durable.
    let file = plane.data_dir().join("slipway.db");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[18..20].copy_from_slice(&[1, 1]);
    std::fs::write(&file, bytes).unwrap();
    let (_, findings) = inspect(&plane, &[]);
    assert_eq!(status(&findings, "database", "durability"), "ok", "{findings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_looks_at_postgres() {
    let Some(server) = postgres::shared("the_doctor_looks_at_postgres").await else { return };
    let database = server.database("doctor").await;
    let mut plane = ControlPlane::new(None);
    plane.on_database(database.url());
    let (_, findings) = inspect(&plane, &[]);
    assert_eq!(status(&findings, "database", "writable"), "ok", "{findings}");
    plane.start().await;
    plane.wait_until_ready().await;
    let (code, findings) = inspect(&plane, &[]);
    for check in ["reachable", "migrations", "writable"] {
        assert_eq!(status(&findings, "database", check), "ok", "{findings}");
    }
    assert_eq!(status(&findings, "clock", "database"), "ok", "{findings}");
    // The server of the tests runs without fsync, which the doctor must report.
    assert_eq!((code, status(&findings, "database", "durability")), (8, "problem"), "{findings}");
    plane.stop().await;
    database.execute(&["UPDATE schema_migrations SET min_reader = 9999 WHERE version = 1"]).await;
    let (_, findings) = inspect(&plane, &[]);
    assert_eq!(status(&findings, "database", "migrations"), "problem", "{findings}");
}

#[test]
fn settings_are_shown_with_their_source_and_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slipway.toml");
    std::fs::write(&file, "token_ttl = \"2h\"\nlease = \"9s\"\n").unwrap();
    let config = |verb: &str| {
        let mut command = binary();
        command.args(["config", verb, "--lease", "5s", "--config"]).arg(&file);
        command
            .env("SLIPWAY_DATA_DIR", folder.path().join("data"))
            .env("SLIPWAY_ADMIN_KEY", KEY)
            .env("SLIPWAY_DATABASE_URL", "postgres://me:hunter2@db/slipway")
            .env("SLIPWAY_RECONCILE_INTERVALL", "5s");
        command
    };
    let output = config("show").args(["-o", "json"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("hunter2") && !text.contains(KEY), "{text}");
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(warned.contains("did you mean SLIPWAY_RECONCILE_INTERVAL?"), "{warned}");
    let shown: Value = serde_json::from_str(&text).unwrap();
    let of = |key: &str| {
        let mut settings = shown.as_array().unwrap().iter();
        let setting = settings.find(|setting| setting["key"] == key).unwrap();
        (setting["value"].clone(), setting["source"].as_str().unwrap().to_owned())
    };
    assert_eq!(of("lease"), ("5s".into(), "flag".to_owned()));
    assert_eq!(of("token_ttl"), ("2h".into(), "file".to_owned()));
    assert_eq!(of("reconcile_interval"), ("30s".into(), "default".to_owned()));
    assert_eq!(of("admin_key"), ("***".into(), "environment".to_owned()));
    let (url, source) = of("database_url");
    assert_eq!((url, source.as_str()), ("postgres://me:***@db/slipway".into(), "environment"));

    assert!(config("check").output().unwrap().status.success());
    std::fs::write(&file, "tokenttl = \"2h\"\n").unwrap();
    let output = config("check").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("error[config_invalid]"), "{text}");
    assert!(text.contains("line 1") && text.contains("did you mean `token_ttl`?"), "{text}");
    assert!(!folder.path().join("data").exists(), "nothing was made");
}

/// What a person would look for long: a root that vanished, a kubeconfig that is missing
/// or leads nowhere, and a mode that only observes.
#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_finds_what_silently_stops_the_work() {
    let mut plane = ControlPlane::new(None);
    let folder = tempfile::tempdir().unwrap();
    let kubeconfigs = folder.path().to_str().unwrap();
    plane.set(&["--kubeconfig-dir", kubeconfigs, "--observe-only"]);
    plane.start().await;
    let body = serde_json::json!({
        "name": "east", "engine": "crossplane", "access": "kubeconfig/east",
    });
    let (status_code, answer) =
        plane.call(reqwest::Method::POST, "/api/v1/clusters", Some(body)).await;
    assert_eq!(status_code, 201, "{answer}");
    let root = plane.substrate_root();
    let more = ["--kubeconfig-dir", kubeconfigs, "--substrate-root", root.to_str().unwrap()];
    let (_, findings) = inspect(&plane, &more);
    assert_eq!(status(&findings, "server", "mode"), "warning", "{findings}");
    assert_eq!(status(&findings, "clusters", "kubeconfig"), "problem", "{findings}");
    assert_eq!(status(&findings, "disk", "substrate_root"), "ok", "{findings}");
    assert!(findings.to_string().contains("as the file `east` into the kubeconfig_dir"));

    // Nothing listens there.
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": { "server": "https://127.0.0.1:1" } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        "users": [{ "name": "u", "user": { "token": "t" } }],
    });
    std::fs::write(folder.path().join("east"), kubeconfig.to_string()).unwrap();
    let (_, findings) = inspect(&plane, &more);
    assert_eq!(status(&findings, "clusters", "kubeconfig"), "problem", "{findings}");
    plane.stop().await;
    std::fs::remove_dir_all(&root).unwrap();
    let (_, findings) = inspect(&plane, &more);
    assert_eq!(status(&findings, "disk", "substrate_root"), "problem", "{findings}");
}
