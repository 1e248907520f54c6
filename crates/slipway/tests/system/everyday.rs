//! Everyday commands against a control plane, without any flag that names it: contexts that
//! `slipway up` writes or cannot write, lists that are watched, waiting, selectors, logs,
//! completion.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use slipway_testkit::ports::lasting_loopback_port;
use slipway_testkit::process::{Signal, Spawned, is_root};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, binary};

/// A plane, and a home whose context names it.
struct Everyday {
    plane: ControlPlane,
    home: tempfile::TempDir,
}

impl Everyday {
    async fn new() -> Self {
        let mut plane = ControlPlane::new(None);
        plane.start().await;
        let everyday = Self { plane, home: tempfile::tempdir().unwrap() };
        let mut login = everyday.command(&["login", "--name", "test"]);
        login.args(["--server", &everyday.plane.url()]).env("SLIPWAY_KEY", KEY);
        succeeded(&login.output().unwrap());
        everyday
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = binary();
        command.args(words).env("HOME", self.home.path());
        command
    }

    fn run(&self, line: &str) -> String {
        let words: Vec<_> = line.split_whitespace().collect();
        succeeded(&self.command(&words).output().unwrap())
    }

    fn code(&self, line: &str) -> Option<i32> {
        let words: Vec<_> = line.split_whitespace().collect();
        self.command(&words).output().unwrap().status.code()
    }

    /// What a shell offers for the last word.
    fn complete(&self, words: &[&str]) -> Vec<String> {
        let index = words.len().to_string();
        let mut command = self.command(&["--", "slipway"]);
        command.args(words).env("SLIPWAY_COMPLETE", "zsh").env("_CLAP_IFS", "\n");
        let output = command.env("_CLAP_COMPLETE_INDEX", index).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.split(':').next().unwrap().to_owned()).collect()
    }
}

fn succeeded(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_watched_while_a_selector_is_deleted_and_waited_for() {
    let everyday = Everyday::new().await;
    for (handle, team) in [("web-1", "a"), ("web-2", "a"), ("db-1", "b")] {
        everyday.run(&format!(
            "resource create --handle {handle} --blueprint local-node -l team={team}"
        ));
    }
    let mut watching = everyday.command(&["resource", "list", "--watch"]);
    let mut watching = Spawned::start(watching.stdout(Stdio::piped())).unwrap();
    let (send, lines) = std::sync::mpsc::channel();
    let output = BufReader::new(watching.child().stdout.take().unwrap());
    std::thread::spawn(move || {
        output.lines().map_while(Result::ok).try_for_each(|line| send.send(line))
    });

    let met =
        everyday.run("wait --for phase=Ready web-1 resource/web-2 db-1 --timeout 40s -o name");
    assert_eq!(met, "resource/web-1\nresource/web-2\nresource/db-1\n");
    let names = everyday.run("resource list -l team=a -o jsonpath={.items[*].handle}");
    assert_eq!(names, "web-1 web-2\n");
    assert_eq!(everyday.complete(&["resource", "get", "w"]), ["web-1", "web-2"]);
    assert_eq!(everyday.complete(&["wait", "--for", "deleted", "resource/d"]), ["resource/db-1"]);
    assert_eq!(everyday.complete(&["resource", "list", "--phase", "R"]), ["Ready"]);
    assert!(everyday.complete(&["resource", "force"]).contains(&"force-drain".to_owned()));
    assert_eq!(everyday.complete(&["context", "use", ""])[0], "test");

    let written = everyday.run("logs web-1 --tail 5");
    assert!(!written.is_empty() && written.lines().count() <= 5, "{written}");
    let document: serde_json::Value =
        serde_json::from_str(&everyday.run("logs web-1 -o json")).unwrap();
    assert!(document["text"].as_str().unwrap().ends_with(&written), "{document}");
    everyday.run("project create metal");
    everyday.run("credential assign local --project metal");
    everyday.run("cluster create by-hand --engine manual");
    everyday.run("cluster assign by-hand --project metal");
    everyday.run("resource create --project metal --handle rack-7 --blueprint manual-node");
    let words = ["logs", "rack-7", "--project", "metal"];
    let elsewhere = everyday.command(&words).output().unwrap();
    let said = String::from_utf8(elsewhere.stderr).unwrap();
    assert!(said.contains("logs_unavailable") && said.contains("journalctl"), "{said}");

    everyday.run("resource delete -l team=a --yes --reason test");
    everyday.run("wait --for deleted web-1 web-2 --timeout 40s");
    assert_eq!(everyday.run("resource list --project default -o name"), "resource/db-1\n");
    let mut seen = Vec::new();
    while !(seen.iter().any(|line: &String| line.contains("web-1") && line.contains("Deleted"))) {
        seen.push(lines.recv_timeout(TIMEOUT).unwrap());
    }
    assert!(seen[0].starts_with("HANDLE"), "the headings once, then rows: {seen:?}");
    assert_eq!(seen.iter().filter(|line| line.starts_with("HANDLE")).count(), 1, "{seen:?}");
    assert!(seen.iter().any(|line| line.contains("db-1") && line.contains("Ready")), "{seen:?}");
    watching.signal(Signal::Interrupt).unwrap();
    assert!(watching.exit(TIMEOUT).await.unwrap().success());

    // Exit codes: not there, being deleted, after the time.
    assert_eq!(everyday.code("wait --for phase=Ready web-1"), Some(5));
    assert_eq!(everyday.code("wait --for deleted db-1 --timeout 200ms"), Some(6));

    // A server that is gone is no reason to keep a shell waiting, or to fail in it.
    everyday.plane.signal(Signal::Stop);
    let begun = Instant::now();
    assert!(everyday.complete(&["resource", "get", "w"]).is_empty());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    everyday.plane.signal(Signal::Continue);
}

/// Starts a control plane as a person would, and answers what it printed.
async fn first_start(home: &Path, prepare: impl FnOnce(&mut Command)) -> (String, String) {
    let (printed, log) = (home.join("printed"), home.join("log"));
    let address = format!("127.0.0.1:{}", lasting_loopback_port().unwrap());
    let mut up = binary();
    up.args(["up", "--listen", &address]).arg("--data-dir").arg(home.join("data"));
    up.env("HOME", home);
    prepare(&mut up);
    up.stdout(std::fs::File::create(&printed).unwrap());
    up.stderr(std::fs::File::create(&log).unwrap());
    let mut up = Spawned::start(&mut up).unwrap();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    wait::until(TIMEOUT, "the next steps to be printed", async || {
        if read(&printed).contains("resource delete") { Ok(()) } else { Err(read(&log)) }
    })
    .await;
    up.signal(Signal::Terminate).unwrap();
    assert!(up.exit(TIMEOUT).await.unwrap().success());
    (read(&printed), read(&log))
}

/// However the contexts are, a start succeeds, and says in one line what it could not do.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_does_not_depend_on_the_contexts() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let without = |case: &str, (printed, log): (String, String)| {
        assert!(printed.contains("export SLIPWAY_KEY="), "{case}: {printed}");
        log.lines().filter(|line| line.contains("no context is written")).count()
    };
    let home = |name: &str| {
        let home = folder.path().join(name);
        std::fs::create_dir(&home).unwrap();
        home
    };
    let (none, said) = (home("none"), home("said"));
    let no_home = |up: &mut Command| {
        up.env_remove("HOME");
    };
    let told = |up: &mut Command| {
        up.arg("--no-context");
    };
    let (no_home, told) = tokio::join!(first_start(&none, no_home), first_start(&said, told));
    assert_eq!((without("no home", no_home), without("told", told)), (1, 0));
    assert!(!said.join(".config").exists());

    std::fs::create_dir(&config).unwrap();
    std::fs::write(config.join("contexts.yaml"), "contexts: [slipway_a_verysecret").unwrap();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(&config.join("contexts.yaml"), 0o600);
    let broken = home("broken");
    let in_folder = |up: &mut Command| {
        up.env("SLIPWAY_CONFIG_HOME", &config);
    };
    assert_eq!(without("broken", first_start(&broken, in_folder).await), 1);
    let below_a_file = home("below");
    let in_file = |up: &mut Command| {
        up.env("SLIPWAY_CONFIG_HOME", config.join("contexts.yaml/below"));
    };
    assert_eq!(without("no folder", first_start(&below_a_file, in_file).await), 1);
    // Root may write everywhere.
    if !is_root() {
        std::fs::remove_file(config.join("contexts.yaml")).unwrap();
        mode(&config, 0o500);
        let locked = home("locked");
        assert_eq!(without("read-only", first_start(&locked, in_folder).await), 1);
        mode(&config, 0o700);
    }

    // A second installation of the same person leaves the context of the first alone.
    let (first, second) = (home("first"), home("second"));
    let shared = home("shared");
    let at_home = |up: &mut Command| {
        up.env("SLIPWAY_CONFIG_HOME", &shared);
    };
    mode(&shared, 0o700);
    let (printed, _) = first_start(&first, at_home).await;
    assert!(printed.contains("The context `local` has it"), "{printed}");
    let (printed, _) = first_start(&second, at_home).await;
    assert!(printed.contains("The context `local-2` has it"), "{printed}");
    assert!(printed.contains("    slipway context use local-2"), "{printed}");
}
