//! The directory agent: what is in the folder after each change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use slipway_agent::fleet::Target;

use crate::stand_in::{Agent, StandIn, config_map, run_once, stack};

/// A folder for manifests, removed at the end of the test.
pub(crate) struct Folder {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { path: folder.path().join("manifests"), _folder: folder }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn target(&self) -> Target {
        Target::Directory { path: self.path.clone() }
    }
}

/// The manifests in a folder: `kind namespace/name` and the first line of the file.
pub(crate) fn objects(folder: &Path) -> BTreeMap<String, (Value, String)> {
    let mut found = BTreeMap::new();
    let Ok(files) = fs::read_dir(folder) else { return found };
    for file in files {
        let path = file.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let body: Value = serde_yaml_ng::from_str(&text).unwrap();
        let name = |field: &str| body["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key =
            format!("{} {}/{}", body["kind"].as_str().unwrap(), name("namespace"), name("name"));
        let first = text.lines().next().unwrap().to_owned();
        assert!(found.insert(key, (body, first)).is_none(), "twice: {}", path.display());
    }
    found
}

fn names(folder: &Path) -> Vec<String> {
    objects(folder).into_keys().collect()
}

#[tokio::test]
async fn a_stack_is_deployed_upgraded_and_removed() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let content = config_map("n", "a", "yes") + &config_map("n", "b", "1");
    let object = server.offer(1, &content);
    run_once(&server, folder.target()).await.unwrap();
    let found = objects(folder.path());
    assert_eq!(names(folder.path()), ["ConfigMap n/a", "ConfigMap n/b"]);
    let (body, first) = &found["ConfigMap n/a"];
    assert_eq!(body["data"]["value"], "yes", "a text stays a text");
    assert!(first.contains(&server.calls().installation) && first.contains(&stack(1)), "{first}");
    assert!(first.contains(&object), "{first}");
    for file in fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        if file.path().is_file() {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
    server.offer(1, &(config_map("n", "b", "2") + &config_map("n", "c", "1")));
    run_once(&server, folder.target()).await.unwrap();
    assert_eq!(names(folder.path()), ["ConfigMap n/b", "ConfigMap n/c"]);
    assert_eq!(objects(folder.path())["ConfigMap n/b"].0["data"]["value"], "2");
    // Deleted while no agent ran.
    server.mark(1);
    run_once(&server, folder.target()).await.unwrap();
    assert!(names(folder.path()).is_empty());
    assert_eq!(fs::read_dir(folder.path().join(".slipway/stacks")).unwrap().count(), 1);
    run_once(&server, folder.target()).await.unwrap();
    assert_eq!(fs::read_dir(folder.path().join(".slipway/stacks")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_is_kept_stays_and_can_be_taken_again() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let content = config_map("n", "a", "1");
    server.offer(1, &content);
    run_once(&server, folder.target()).await.unwrap();
    let marker = server.mark_kept(1);
    run_once(&server, folder.target()).await.unwrap();
    server.reported(&marker, "KEEP", "SUCCESS").await;
    let (_, first) = &objects(folder.path())["ConfigMap n/a"];
    assert!(!first.contains("slipway"), "{first}");
    // Restored: the same content is the same file.
    let again = server.offer(1, &content);
    run_once(&server, folder.target()).await.unwrap();
    server.reported(&again, "DEPLOY", "SUCCESS").await;
    assert!(objects(folder.path())["ConfigMap n/a"].1.contains(&again));
}

#[tokio::test]
async fn two_stacks_do_not_share_an_object_and_nobodys_file_is_overwritten() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    server.offer(1, &config_map("n", "a", "1"));
    run_once(&server, folder.target()).await.unwrap();
    let both = config_map("n", "a", "2") + &config_map("n", "b", "2");
    let second = server.offer(2, &both);
    let refused = run_once(&server, folder.target()).await.unwrap_err();
    assert!(refused.to_string().contains("ConfigMap n/a"), "{refused}");
    server.reported(&second, "DEPLOY", "FAILURE").await;
    assert_eq!(objects(folder.path())["ConfigMap n/a"].0["data"]["value"], "1");
    assert_eq!(names(folder.path()), ["ConfigMap n/a"], "nothing of the other was applied");
    // The object moves: one leaves, and the other may have it.
    server.mark(1);
    run_once(&server, folder.target()).await.unwrap();
    assert_eq!(names(folder.path()), ["ConfigMap n/a", "ConfigMap n/b"]);
    assert_eq!(objects(folder.path())["ConfigMap n/a"].0["data"]["value"], "2");
}

#[tokio::test]
async fn drift_is_repaired_and_reported() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let agent = Agent::start(server.options(folder.target()));
    let object = server.offer(1, &(config_map("n", "a", "1") + &config_map("n", "b", "1")));
    server.reported(&object, "DEPLOY", "SUCCESS").await;
    let files: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    fs::remove_file(&files[0]).unwrap();
    fs::write(&files[1], "{}").unwrap();
    let repaired = |calls: &crate::stand_in::Calls| {
        let drifts = calls.events.iter().filter(|event| event.event_type == "DRIFT");
        drifts.filter(|event| event.status == "SUCCESS").count() == 2
    };
    server.until("two repairs", repaired).await;
    assert_eq!(names(folder.path()), ["ConfigMap n/a", "ConfigMap n/b"]);
    agent.stop().await;
}

/// Without its inventory the agent knows its files by what they say, and removes none.
#[tokio::test]
async fn a_lost_inventory_deletes_nothing() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    server.offer(1, &config_map("n", "a", "1"));
    server.offer(2, &config_map("n", "b", "1"));
    run_once(&server, folder.target()).await.unwrap();
    fs::remove_dir_all(folder.path().join(".slipway")).unwrap();
    server.withdraw(2);
    let object = server.offer(1, &config_map("n", "a", "2"));
    run_once(&server, folder.target()).await.unwrap();
    server.reported(&object, "DEPLOY", "SUCCESS").await;
    assert_eq!(names(folder.path()), ["ConfigMap n/a", "ConfigMap n/b"]);
}

#[tokio::test]
async fn names_that_would_leave_the_folder_stay_in_it() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let content = config_map("'../../n'", "'../../../etc/passwd'", "1");
    server.offer(1, &content);
    run_once(&server, folder.target()).await.unwrap();
    assert_eq!(objects(folder.path()).len(), 1);
    let outside = fs::read_dir(folder.path().parent().unwrap()).unwrap().count();
    assert_eq!(outside, 1);
}

/// A marker for a stack that the inventory lacks: what says that it is of the stack goes, before
/// success is reported.
#[tokio::test]
async fn a_marker_finds_what_a_lost_inventory_does_not_know() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let content = config_map("n", "a", "1") + &config_map("n", "b", "1");
    server.offer(1, &content);
    server.offer(2, &config_map("n", "c", "1"));
    run_once(&server, folder.target()).await.unwrap();
    fs::remove_file(folder.path().join(".slipway/stacks").join(stack(1))).unwrap();
    fs::write(folder.path().join("notes.txt"), "nobody's").unwrap();
    let marker = server.mark(1);
    run_once(&server, folder.target()).await.unwrap();
    server.reported(&marker, "DELETE", "SUCCESS").await;
    fs::remove_file(folder.path().join("notes.txt")).unwrap();
    assert_eq!(names(folder.path()), ["ConfigMap n/c"], "only this stack");

    // The same for a marker that keeps.
    server.offer(1, &content);
    run_once(&server, folder.target()).await.unwrap();
    fs::remove_dir_all(folder.path().join(".slipway")).unwrap();
    let marker = server.mark_kept(1);
    run_once(&server, folder.target()).await.unwrap();
    server.reported(&marker, "KEEP", "SUCCESS").await;
    let found = objects(folder.path());
    assert!(!found["ConfigMap n/a"].1.contains("slipway"), "{found:?}");
    assert!(found["ConfigMap n/c"].1.contains(&stack(2)), "{found:?}");
}

/// A file that somebody copied or broke is of the stack still, so there is no success while it
/// is there.
#[tokio::test]
async fn a_marker_without_an_inventory_fails_while_something_of_the_stack_may_be_left() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    server.offer(1, &config_map("n", "a", "1"));
    run_once(&server, folder.target()).await.unwrap();
    let mut files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    let file = files.find(|path| path.is_file()).unwrap();
    let copy = folder.path().join("copy.yaml");
    fs::copy(&file, &copy).unwrap();
    fs::remove_dir_all(folder.path().join(".slipway")).unwrap();
    let marker = server.mark(1);
    let refused = run_once(&server, folder.target()).await.unwrap_err();
    assert!(refused.to_string().contains("copy.yaml"), "{refused}");
    let message = server.reported(&marker, "DELETE", "FAILURE").await.message.unwrap();
    assert!(message.contains("copy.yaml"), "{message}");
    assert!(!file.exists() && copy.exists());
    // Another process does not believe its inventory meanwhile.
    run_once(&server, folder.target()).await.unwrap_err();
    fs::remove_file(&copy).unwrap();
    run_once(&server, folder.target()).await.unwrap();
    server.reported(&marker, "DELETE", "SUCCESS").await;
}
