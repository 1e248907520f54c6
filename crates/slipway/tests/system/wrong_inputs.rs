//! Wrong inputs as a new user types them, in a terminal of 80 columns: what the real
//! binary answers, and its exit code. One shell types them all.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use reqwest::Method;
use serde_json::json;

use crate::control_plane::{ControlPlane, KEY, binary};
use crate::explained::mask;

/// A blueprint with a parameter of each type, for engine local.
const SIZED: &str = "sized";

/// What is wrong, one line each; `sh` reads them.
const DECLARATIONS: &[&str] = &[
    "resource create",
    "resource create --handle web-1",
    "resource create --handle web-1 --blueprint local-node -p busy_seconds",
    "resource create --handle web-1 --blueprint local-node -p =5",
    "resource create --handle web-1 --blueprint local-node -p a=1 -p a=2",
    "resource create --handle web-1 --blueprint local-node -l team",
    "resource create --handle web-1 --blueprint local-node -p busy_seconds=soon",
    "resource create --handle web-1 --blueprint local-node -p busy_second=5",
    "resource create --handle 'Web 1' --blueprint local-node",
    "resource create --handle '' --blueprint local-node",
    "resource create --handle taken --blueprint local-node",
    "resource create --handle web-1 --blueprint local-noed",
    "resource create --handle web-1 --blueprint local-node --version v9",
    "resource create --handle web-1 --blueprint local-node --project defualt",
    "resource create --handle web-1 --blueprint local-node --credential lokal",
    "resource create --handle web-1 --blueprint local-node --timeout 5m",
    "resource create --handle web-1 --blueprint local-node --wait --timeout 5",
    "resource create --handle 'Web 1' --blueprint local-node -l 'a b=c' -p speed=1 --credential x",
    "resource create --handle 'Web 1' --blueprint local-node -p busy_seconds=x -o json",
    "resource create --handle web-1 --blueprint sized -p size=big -p public=1",
    "resource create --handle web-1 --blueprnt local-node",
    "resource crate --handle web-1",
    "resorce list",
    "resource create -o json",
];

const FILTERS: &[&str] = &[
    "resource list --project defualt",
    "resource list --project ''",
    "resource list --phase ready",
    "resource list --phase Broken",
    "resource list --blocked namespace_notready",
    "resource list -l a==b",
    "resource list -l a!=b",
    "resource list -l 'a in (b)'",
    "resource list -l a=b,c=d",
    "resource list -l ''",
    "resource list --limit 0",
    "resource list --limit many",
    "resource list --phse Ready",
    "resource list -o jsno",
    "resource list -l nobody=has-it",
    "resource list -l nobody=has-it -o json",
    "audit list --verb resource.delte",
    "audit list --verb delete",
    "audit list --kind resorce",
    "audit list --actor admin",
    "audit list --project defualt",
    "audit list --id web-1",
    "audit list --since yesterday",
    "audit list --since 1h --until 2h",
    "audit list --verb cloud.delete --since 90s",
    "audit export --verb resource.delte",
    "leaks --kind unclaimed_objekt",
    "leaks list --state closed",
    "leaks list",
    "credential list --cloud locl",
    "credential list --project defualt",
    "event list --after x",
    "explain resorce web-1",
    "explain resource nobody",
];

const REFERENCES: &[&str] = &[
    "resource get nobody",
    "resource get takne",
    "resource get taken --project defualt",
    "resource history taken --attempt 7",
    "resource history taken --attempt one",
    "resource delete nobody --yes",
    "resource delete nobody --yes --ignore-not-found",
    "resource delete taken",
    "resource force-drain nobody --reason x --yes --wait",
    "resource force-drain taken --yes",
    "resource retry taken --reason ''",
    "resource abandon taken --reason x --confirm other",
    "project get defualt",
    "project create 'My Project'",
    "project create default",
    "project create shop --mesh-cidr 10.0.0.0",
    "project delete nobody --yes",
    "project delete nobody --yes --ignore-not-found",
    "project delete nobody --yes --ignore-not-found -o json",
    "cloud get lokal",
    "cloud delete nobody --yes --ignore-not-found",
    "cluster get lokal",
    "cluster create east --engine kubernetes",
    "credential get lokal",
    "credential delete nobody --yes --ignore-not-found",
    "credential create deploy --cloud nowhere",
    "blueprint get local-noed",
    "blueprint versions local-noed",
    "blueprint create Server --display-name '' --engine magic",
    "blueprint retire local-node v9 --yes",
    "label get nobody",
    "blueprint delete nobody --yes --ignore-not-found",
    "label delete nobody --yes --ignore-not-found",
    "node get web-1",
    "node get 0192f0c1-2b3c-7d4e-8f50-123456789abc",
    "token show x",
    "token revoke 0192f0c1-2b3c-7d4e-8f50-123456789abc --yes --ignore-not-found",
    "token issue taken --ttl 2d",
    "key show 0192f0c1-2b3c-7d4e-8f50-123456789abc",
    "key create --name ci --role amdin",
    "key create --name ci --role viewer --ttl 30",
    "key create --name ci --role viewer --project nowhere",
    "key revoke 0192f0c1-2b3c-7d4e-8f50-123456789abc --yes --ignore-not-found",
    "key rotate 0192f0c1-2b3c-7d4e-8f50-123456789abc --overlap 8d",
    "deletion get x",
    "leaks get x",
    "event unsubscribe nobody --yes --ignore-not-found",
    "freeze --for 8d --reason x",
    "freeze --for soon --reason x",
    "freeze --for 0s --reason x",
    "unfreeze --reason x",
    "resume --reason x",
];

const OFFLINE: &[&str] = &[
    "--frobnicate",
    "--version extra",
    "resource list --server nonsense",
    "resource list --server http://127.0.0.1:1",
    "resource list --key wrong",
    "resource list --key-file nothing",
    "label list --key-file key",
    "resource list --ca-file nothing",
    "config check --token-ttl 1m",
    "config check --token-ttl soon",
    "config check --reconcile-interval 0s",
    "config check --event-retention 8d",
    "config check --lease 1s -o json",
    "config check --database-url mysql://x",
    "config check --config nothing.toml",
    "config check --config typo.toml",
    "config check --listen 0.0.0.0:7700",
    "config check --tls-cert /dev/null",
    "config check --tls-cert /dev/null --tls-key /nonexistent",
    "config check --node-ca-file /nonexistent",
    "config check --data-dir /dev/null/x",
    "config check --substrate-root /dev/null/x",
    "config check --admin-key short",
    "config check --public-url slipway.example",
    "config check --rate-limit 0",
    "up --config typo.toml",
    "up --admin-key short --listen 127.0.0.1:0",
    "backup",
    "restore nothing --yes",
    "completions tcsh",
    "blueprint publish",
    "blueprint publish -f nothing",
    "blueprint import nothing",
    "blueprint import broken",
    "blueprint check nothing",
    "blueprint check broken",
    "blueprint check broken -o json",
    "blueprint check fine",
];

/// The folders and files that the lines name.
fn furnish(folder: &Path) {
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("typo.toml", "lisetn = \"127.0.0.1:0\"\n");
    // A key with a line end is a key.
    write("key", &format!("{KEY}\n"));
    for name in ["metadata.json", "xrd.yaml", "composition.yaml"] {
        let text = std::fs::read_to_string(Path::new("tests/catalog/server").join(name)).unwrap();
        write(&format!("fine/server/{name}"), &text);
        let broken = match name {
            "xrd.yaml" => text.replace("served: true", "served: false"),
            "metadata.json" => text.replace("\"version\": \"v1alpha1\"", "\"version\": \"V 1\""),
            _ => text,
        };
        write(&format!("broken/server/{name}"), &broken);
    }
    let metadata = r#"{"slug": "typed", "verzion": "v1", "providerKinds": "hetzner",
        "injectionStrategy": "helm-value",
        "parameterSchema": {"parameters": [{"name": "size", "type": "number"}]}}"#;
    write("broken/typed/metadata.json", metadata);
    write("broken/typed/xrd.yaml", "a: [\n");
}

/// Types the lines in one terminal of these columns, and answers what is on screen.
pub(crate) fn typed(folder: &Path, url: &str, columns: u16, lines: &[&str]) -> String {
    let mut script = format!("stty cols {columns} rows 50 -onlcr\n");
    for line in lines {
        let line = format!("slipway {line}");
        // Nobody answers questions, and what is asked for needs no terminal.
        let shown = line.trim_end().replace('\'', "'\\''");
        writeln!(script, "echo '$ {shown}'\n{line} </dev/null\necho \"[exit $?]\"").unwrap();
    }
    std::fs::write(folder.join("script.sh"), script).unwrap();
    let program = binary();
    let path = Path::new(program.get_program()).parent().unwrap().display().to_string();
    let output = Command::new("script")
        .args(["-qec", "sh script.sh", "/dev/null"])
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{path}:/usr/bin:/bin"))
        .env("HOME", folder)
        .env("NO_COLOR", "1")
        .env("SLIPWAY_SERVER", url)
        .env("SLIPWAY_KEY", format!("{KEY}\n"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n")
}

/// What was typed, JSON and the lines that the parser of the command line writes are
/// left to the terminal.
pub(crate) fn fits(line: &str, columns: usize) -> bool {
    line.chars().count() <= columns
        || line.contains('"')
        || ["$ ", "error: ", "Usage: ", "  [", "  tip: "]
            .iter()
            .any(|begin| line.starts_with(begin))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_new_user_mistypes_is_answered() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let id = plane.declare("taken", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let make = async |path: &str, body| {
        let (status, made) = plane.call(Method::POST, path, Some(body)).await;
        assert_eq!(status, 201, "{made}");
    };
    make(
        "/api/v1/blueprints",
        json!({ "slug": SIZED, "display_name": "Sized", "engine": "local" }),
    )
    .await;
    let parameter = |name: &str, kind: &str| json!({ "name": name, "type": kind });
    let parameters =
        [parameter("size", "integer"), parameter("public", "boolean"), parameter("zone", "string")];
    make(
        "/api/v1/blueprints/sized/versions",
        json!({
            "version": "v1", "injection_strategy": "cloud-init-user-data",
            "provider_kinds": ["local"], "parameter_schema": { "parameters": parameters },
        }),
    )
    .await;
    let folder = tempfile::tempdir().unwrap();
    furnish(folder.path());
    let groups = [
        ("declarations", DECLARATIONS),
        ("filters", FILTERS),
        ("references", REFERENCES),
        ("offline", OFFLINE),
    ];
    for (name, lines) in groups {
        let text = typed(folder.path(), &plane.url(), 80, lines);
        let text = mask(&text);
        let long: Vec<_> = text.lines().filter(|line| !fits(line, 80)).collect();
        assert!(long.is_empty(), "{long:#?}");
        insta::assert_snapshot!(name, text);
    }
    // Nothing typed shows the help, also if the environment has settings.
    for (line, usage) in [("", "slipway [OPTIONS]"), ("resource", "slipway resource [OPTIONS]")] {
        let shown = typed(folder.path(), &plane.url(), 80, &[line]);
        assert!(shown.contains(&format!("Usage: {usage} <COMMAND>")), "{shown}");
        assert!(shown.ends_with("[exit 2]\n"), "{shown}");
    }
    // Types come from the blueprint: a text stays one, and quotes are not part of it.
    let texts = [("22", json!("22")), ("'\"22\"'", json!("22")), ("true", json!("true"))];
    for (index, (text, value)) in texts.into_iter().enumerate() {
        let line =
            format!("resource create --handle z-{index} --blueprint sized -p zone={text} -o json");
        let shown = typed(folder.path(), &plane.url(), 80, &[&line]);
        assert!(shown.contains("[exit 0]"), "{shown}");
        let made = plane.get(&format!("/api/v1/resources?handle=z-{index}")).await;
        assert_eq!(made[0]["attempt"]["parameters"]["zone"], value, "{text}");
    }
    for columns in [60, 120] {
        let shown = typed(folder.path(), &plane.url(), columns, &FILTERS[..9]);
        assert!(shown.lines().all(|line| fits(line, usize::from(columns))), "{shown}");
    }
    plane.stop().await;
}
