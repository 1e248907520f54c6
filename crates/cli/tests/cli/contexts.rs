//! Contexts and `login`: which server is asked with which key, and what is kept.

use serde_json::{Value, json};
use slipway_cli::Exit;

use crate::stand_in::{ID, Reply, StandIn, mk_problem, mk_resource, run_alone};

const KEY: &str = "slipway_abcdefgh_verysecret";

fn whoami() -> Reply {
    let time = "2026-01-31T12:00:00.000000Z";
    Reply::of(
        200,
        json!({
            "id": ID, "name": "ci", "owner": "ci", "role": "operator", "project_id": ID, "project": "shop",
            "state": "usable", "created_at": time, "created_by": null, "rotated_at": null,
            "rotated_by": null, "previous_until": null, "expires_at": null, "revoked_at": null,
            "revision": 1, "updated_at": time,
        }),
    )
}

/// A folder of contexts of its own.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> String {
        self.folder.path().join("slipway").display().to_string()
    }

    async fn run(&self, line: &str, answers: &'static str) -> crate::stand_in::Ended {
        let home = self.path();
        let line: Vec<_> =
            ["--config-home", &home].into_iter().chain(line.split_whitespace()).collect();
        let ended = run_alone(&line, answers).await;
        let all = format!("{}{}", ended.output, ended.errors);
        assert!(!all.contains("verysecret"), "a key is never shown: {all}");
        ended
    }
}

#[tokio::test]
async fn after_a_login_commands_need_no_flag() {
    let server = StandIn::new(vec![whoami(), Reply::of(200, json!([mk_resource("Ready")]))]).await;
    let home = Home::new();
    let login = format!("login --server {} --name prod", server.url());
    let ended = home.run(&login, "slipway_abcdefgh_verysecret\n").await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert!(ended.errors.contains("logged in as key `ci`, role operator"), "{ended:?}");

    let ended = home.run("resource list -o name", "").await;
    assert_eq!((ended.exit, ended.output.as_str()), (Exit::Success, "resource/web-1\n"));
    let ended = home.run("resource list --all-projects", "").await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.key.as_deref() == Some(&format!("Bearer {KEY}"))));
    let lines: Vec<_> = asked.iter().map(|asked| asked.line.as_str()).collect();
    let expected = [
        "GET /api/v1/whoami",
        "GET /api/v1/resources?project=shop&limit=500",
        "GET /api/v1/resources?limit=500",
    ];
    assert_eq!(lines, expected, "the project of the key is the usual one");

    // Again, with the name alone: the server stays.
    for again in ["login --context prod", "login --name prod"] {
        let ended = home.run(again, "").await;
        assert_eq!(ended.exit, Exit::Usage, "{ended:?}");
        assert!(ended.errors.contains("no key was given"), "{ended:?}");
    }
    let ended = home.run("context list", "").await;
    let found: Vec<_> = ended.output.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(found, ["*", "prod", server.url(), "shop", "slipway_abcdefgh_…"]);
    let ended = home.run("context show -o json", "").await;
    let shown: Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!((&shown["name"], &shown["current"]), (&json!("prod"), &json!(true)));
}

#[tokio::test]
async fn a_key_that_the_server_refuses_is_not_kept() {
    let refusal = Reply::of(401, mk_problem(401, "unauthenticated"));
    let server = StandIn::new(vec![refusal]).await;
    let home = Home::new();
    let login = format!("login --server {}", server.url());
    let ended = home.run(&login, "slipway_abcdefgh_verysecret").await;
    assert_eq!(ended.exit, Exit::Unauthenticated, "{ended:?}");
    for (typed, expected) in [("", "no key was given"), ("a\u{7}b", "letters, digits")] {
        let ended = home.run(&login, typed).await;
        assert_eq!(ended.exit, Exit::Usage, "{ended:?}");
        assert!(ended.errors.contains(expected), "{ended:?}");
    }
    assert_eq!(server.lines().len(), 1, "nothing was sent without a key");
    let ended = home.run("context list", "").await;
    assert!(ended.errors.contains("no contexts"), "{ended:?}");
}

/// Later the key is revoked, or the server is gone: the hint names the context.
#[tokio::test]
async fn an_error_names_the_context_that_may_be_at_fault() {
    let refusal = Reply::of(401, mk_problem(401, "unauthenticated"));
    let server = StandIn::new(vec![refusal]).await;
    let home = Home::new();
    let add = format!("context add prod --server {} --key {KEY} --use", server.url());
    assert_eq!(home.run(&add, "").await.exit, Exit::Success);
    let ended = home.run("resource list", "").await;
    assert_eq!(ended.exit, Exit::Unauthenticated, "{ended:?}");
    assert!(ended.errors.contains("slipway login --context prod"), "{ended:?}");

    let gone = "context add gone --server http://127.0.0.1:1 --key k --project shop";
    assert_eq!(home.run(gone, "").await.exit, Exit::Success);
    let ended = home.run("resource list --context gone -o json", "").await;
    assert_eq!(ended.exit, Exit::Unreachable, "{ended:?}");
    let error: Value = serde_json::from_str(&ended.errors).unwrap();
    assert_eq!(error["code"], "unreachable");
    assert!(error["hint"].as_str().unwrap().contains("context `gone`"), "{error}");
}

#[tokio::test]
async fn contexts_are_added_used_and_removed() {
    let home = Home::new();
    let add = |name: &str, more: &str| {
        format!("context add {name} --server http://127.0.0.1:1 --key {KEY} {more}")
    };
    let ended = home.run(&add("one", ""), "").await;
    assert!(ended.errors.contains("slipway context use one"), "{ended:?}");
    for (line, exit, text) in [
        (add("one", ""), Exit::Usage, "context_exists"),
        (add("one", "--replace --project shop"), Exit::Success, ""),
        (add("two", "--use"), Exit::Success, ""),
        (add("../x", ""), Exit::Usage, "name of a context"),
        ("context add three".to_owned(), Exit::Usage, "--server"),
        ("context add three --server nonsense".to_owned(), Exit::Usage, "no URL"),
        ("context use tow".to_owned(), Exit::NotFound, "did you mean `two`?"),
        ("context use one".to_owned(), Exit::Success, "current context"),
        ("context remove one".to_owned(), Exit::Usage, "--yes"),
        ("context remove one --yes".to_owned(), Exit::Success, "no context is the current one"),
        ("context show one".to_owned(), Exit::NotFound, "no context `one`"),
        ("context show".to_owned(), Exit::Success, "http://127.0.0.1:7700"),
        // A login does not take the place of another server's context by accident.
        (
            format!("login --name two --server http://127.0.0.1:2 --key {KEY}"),
            Exit::Usage,
            "context_exists",
        ),
    ] {
        let ended = home.run(&line, "").await;
        assert_eq!(ended.exit, exit, "{line}: {ended:?}");
        assert!(ended.errors.contains(text), "{line}: {ended:?}");
    }
    let ended = home.run("context list -o name", "").await;
    assert_eq!(ended.output, "context/two\n");
}

#[tokio::test]
async fn two_logins_at_once_keep_both() {
    let server = StandIn::new(vec![whoami()]).await;
    let home = Home::new();
    let login = |name: &str| format!("login --server {} --name {name}", server.url());
    let typed = "slipway_abcdefgh_verysecret";
    let (one, two) = (login("one"), login("two"));
    let (one, two) = tokio::join!(home.run(&one, typed), home.run(&two, typed));
    assert_eq!((one.exit, two.exit), (Exit::Success, Exit::Success), "{one:?} {two:?}");
    let ended = home.run("context list -o name", "").await;
    assert_eq!(ended.output.lines().count(), 2, "{ended:?}");
}

/// With flags or variables that say everything, the file is not even read.
#[tokio::test]
async fn a_broken_file_hinders_only_who_needs_it() {
    let server = StandIn::new(vec![Reply::of(200, json!([]))]).await;
    let home = Home::new();
    let add = format!("context add one --server {} --key {KEY} --use", server.url());
    assert_eq!(home.run(&add, "").await.exit, Exit::Success);
    let file = home.folder.path().join("slipway/contexts.yaml");
    std::fs::write(&file, "contexts: {one: {server: [slipway_abcdefgh_verysecret").unwrap();
    let whole = format!("resource list --server {} --key k", server.url());
    assert_eq!(home.run(&whole, "").await.exit, Exit::Success);
    for line in ["resource list", "context list", "context use one", &add] {
        let ended = home.run(line, "").await;
        assert_eq!(ended.exit, Exit::Usage, "{line}: {ended:?}");
        assert!(ended.errors.contains("contexts_invalid"), "{line}: {ended:?}");
    }
}
