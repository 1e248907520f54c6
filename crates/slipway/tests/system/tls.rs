//! TLS with the real binary: the command line and agents on it, a renewed
//! certificate, and what refuses to start.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use serde_json::Value;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, binary};

/// An authority, and the files of what it issued.
struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::<String>::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { folder, issuer: Issuer::new(parameters, key) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }

    /// Writes `tls.crt` and `tls.key` with a certificate until this year.
    fn issue(&self, until: i32) {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let mut parameters = CertificateParams::new(names).unwrap();
        parameters.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.file("tls.crt"), certificate.pem()).unwrap();
        std::fs::write(self.file("tls.key"), key.serialize_pem()).unwrap();
        self.mode(0o600);
    }

    fn mode(&self, mode: u32) {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.file("tls.key"), permissions).unwrap();
    }
}

/// The command line against a server with TLS.
fn slipway(server: &str, authorities: Option<&str>, arguments: &[&str]) -> Output {
    let mut command = binary();
    command.args(arguments).env("SLIPWAY_SERVER", server).env("SLIPWAY_KEY", KEY);
    if let Some(file) = authorities {
        command.env("SLIPWAY_CA_FILE", file);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// An agent of the local engine enrols over TLS, the command line reaches the
/// server, and only with the authority.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_the_command_line_speak_tls() {
    let authority = Authority::new();
    authority.issue(2_099);
    let mut plane = ControlPlane::new(None);
    let server = plane.url().replace("http://127.0.0.1", "https://localhost");
    let (certificate, key) = (authority.text("tls.crt"), authority.text("tls.key"));
    let ca = authority.text("ca.pem");
    plane.set(&["--tls-cert", &certificate, "--tls-key", &key, "--node-ca-file", &ca]);
    plane.set(&["--public-url", &server]);
    plane.start().await;
    assert!(plane.read("server.json").contains("https://"), "{}", plane.read("server.json"));

    let create = ["resource", "create", "--handle", "web-1", "--blueprint", "local-node", "--wait"];
    let created = slipway(&server, Some(&ca), &create);
    assert!(created.status.success(), "{}\n{}", said(&created), plane.log_tail());
    let stranger = slipway(&server, None, &["resource", "list"]);
    assert!(!stranger.status.success() && said(&stranger).contains("certificate"));
    let plain = slipway(&plane.url(), None, &["resource", "list"]);
    assert!(!plain.status.success(), "{}", said(&plain));
    let missing = slipway(&server, Some("/nowhere.pem"), &["resource", "list"]);
    assert!(
        said(&missing).contains("--ca-file `/nowhere.pem` cannot be read"),
        "{}",
        said(&missing)
    );

    let delete = ["resource", "delete", "web-1", "--yes", "--wait"];
    let deleted = slipway(&server, Some(&ca), &delete);
    assert!(deleted.status.success(), "{}\n{}", said(&deleted), plane.log_tail());

    // A pair that does not match is noticed, logged once, and not used.
    std::fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let line = "the new TLS certificate is not used";
    wait::until(TIMEOUT, "the bad pair to be noticed", async || plane.log_text().contains(line))
        .await;
    assert!(slipway(&server, Some(&ca), &["resource", "list"]).status.success());
    authority.issue(2_098);
    let line = "a new TLS certificate is used from now on";
    wait::until(TIMEOUT, "the new pair to be used", async || plane.log_text().contains(line)).await;
    assert!(slipway(&server, Some(&ca), &["resource", "list"]).status.success());
    assert_eq!(plane.log_text().matches("TLS certificate is not used").count(), 1);
    plane.stop().await;
}

/// What would send keys in the clear, or cannot work, is refused by `up` and by
/// `config check` alike.
#[test]
fn a_listener_that_is_not_protected_is_refused() {
    let authority = Authority::new();
    authority.issue(2_099);
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (authority.text("tls.crt"), authority.text("tls.key"));
    let refused = |arguments: &[&str], code: &str, names: &str| {
        for command in [&["up"][..], &["config", "check"]] {
            let mut run = binary();
            run.args(command).args(arguments).arg("--data-dir").arg(folder.path().join("data"));
            let output = run.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
            let text = said(&output);
            assert_eq!(output.status.code(), Some(2), "{command:?}: {text}");
            assert!(text.contains(&format!("error[{code}]")), "{command:?}: {text}");
            assert!(text.contains(names), "{command:?}: {text}");
        }
    };
    for outside in ["0.0.0.0:0", "[::]:0"] {
        refused(&["--listen", outside], "listen_unprotected", "`behind_proxy`");
    }
    let local = ["--listen", "127.0.0.1:0", "--tls-cert", &certificate];
    refused(&local, "config_invalid", "`tls_key` must be given with `tls_cert`");
    let other = authority.text("other.key");
    std::fs::write(&other, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let pair = ["--listen", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &other];
    refused(&pair, "tls_unusable", "is not that of the certificate");
    assert!(!folder.path().join("data").exists(), "nothing was made");
    let check = |arguments: &[&str]| {
        let output = binary().args(["config", "check"]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    };
    let data = folder.path().display().to_string();
    let outside = ["--data-dir", &data, "--listen", "0.0.0.0:0"];
    check(&[&outside[..], &["--behind-proxy"]].concat());
    check(&[&outside[..], &["--tls-cert", &certificate, "--tls-key", &key]].concat());
}

#[test]
fn the_doctor_looks_at_the_certificate_and_the_listener() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (authority.text("tls.crt"), authority.text("tls.key"));
    let findings = |arguments: &[&str]| -> Value {
        let mut command = binary();
        command.args(["doctor", "-o", "json", "--server", "http://127.0.0.1:1", "--data-dir"]);
        let output = command.arg(folder.path().join("data")).args(arguments).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)))
    };
    let status = |findings: &Value, area: &str, check: &str| {
        let mut found = findings.as_array().unwrap().iter();
        let found = found.find(|found| found["area"] == area && found["check"] == check);
        let found = found.unwrap_or_else(|| panic!("no {area} {check}: {findings}"));
        assert_eq!(found["status"] != "ok", found["remedy"].is_string(), "{found}");
        found["status"].as_str().unwrap().to_owned()
    };
    let pair = ["--tls-cert", &certificate, "--tls-key", &key];
    assert_eq!(status(&findings(&[]), "tls", "listener"), "ok");
    assert_eq!(status(&findings(&["--listen", "0.0.0.0:1"]), "config", "settings"), "problem");
    let proxied = findings(&["--listen", "0.0.0.0:1", "--behind-proxy"]);
    assert_eq!(status(&proxied, "tls", "listener"), "warning");

    assert_eq!(status(&findings(&pair), "tls", "certificate"), "problem", "no files yet");
    authority.issue(2_099);
    let good = findings(&pair);
    for check in ["certificate", "key_file", "listener"] {
        assert_eq!(status(&good, "tls", check), "ok", "{good}");
    }
    authority.mode(0o640);
    assert_eq!(status(&findings(&pair), "tls", "key_file"), "warning");
    authority.issue(2_020);
    assert_eq!(status(&findings(&pair), "tls", "certificate"), "problem", "it has ended");
    authority.issue(2_099);
    std::fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    assert_eq!(status(&findings(&pair), "tls", "certificate"), "problem", "another key");
}
