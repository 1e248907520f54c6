//! `slipway backup` and `slipway restore` with the real binary, while a control
//! plane is busy and after it is gone.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use reqwest::Method;
use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, binary};

fn run(command: &mut Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap()
}

fn backup(data_dir: &Path, file: &Path) -> Command {
    let mut command = binary();
    command.arg("backup").arg(file).arg("--data-dir").arg(data_dir);
    command
}

fn restore(data_dir: &Path, file: &Path) -> Command {
    let mut command = binary();
    command.arg("restore").arg(file).arg("--data-dir").arg(data_dir);
    command
}

fn succeeds(command: &mut Command) -> Value {
    let output = run(command.args(["-o", "json"]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(command: &mut Command, code: &str) -> String {
    let output = run(command);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{text}");
    assert!(text.contains(&format!("error[{code}]")), "expected {code}: {text}");
    text
}

/// The names of everything in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_busy_control_plane_is_restored_elsewhere() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let kept = plane.declare("kept", 0).await;
    plane.wait_for_phase(&kept, "Ready").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slipway.backup");

    // Declared just before, and in progress while the backup is taken.
    let mut busy = Vec::new();
    for number in 0..8 {
        busy.push(plane.declare(&format!("busy-{number}"), 0).await);
    }
    let taken = succeeds(&mut backup(&plane.data_dir(), &file));
    assert_eq!(taken["signing_key"], true, "{taken}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(folder.path()), ["slipway.backup"], "nothing is left beside it");
    for id in &busy {
        plane.wait_for_phase(id, "Ready").await;
    }

    // Commands that would do harm are refused.
    let written = std::fs::read(&file).unwrap();
    assert!(refused(&mut backup(&plane.data_dir(), &file), "file_exists").contains("--force"));
    assert_eq!(std::fs::read(&file).unwrap(), written);
    let database = plane.data_dir().join("slipway.db");
    refused(backup(&plane.data_dir(), &database).arg("--force"), "file_is_the_database");
    refused(restore(&plane.data_dir(), &file).arg("--yes"), "data_directory_in_use");
    succeeds(backup(&plane.data_dir(), &folder.path().join("second")).arg("--force"));
    plane.stop().await;

    // Elsewhere: another data directory, the same nodes.
    let mut other = plane.successor();
    let restored = succeeds(&mut restore(&other.data_dir(), &file));
    assert_eq!(restored["installation_id"], taken["installation_id"]);
    assert_eq!(restored["kept_aside"], Value::Null);
    let key = |plane: &ControlPlane| std::fs::read(plane.data_dir().join("signing.pk8")).unwrap();
    assert_eq!(key(&other), key(&plane), "nodes know the installation by it");
    let mode = |name: &str| {
        std::fs::metadata(other.data_dir().join(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("signing.pk8"), mode("slipway.db")), (0o600, 0o600));
    assert!(!names(&other.data_dir()).iter().any(|name| name.contains("restoring")));

    other.start().await;
    let control = other.get("/api/v1/control").await;
    assert_eq!(control["mode"], "observing", "{control}");
    let before = other.agents().len();
    assert_eq!(before, 9);
    let body = json!({ "reason": "looked at the plan" });
    let (status, control) = other.call(Method::POST, "/api/v1/control/resume", Some(body)).await;
    assert_eq!((status, &control["mode"]), (200, &json!("acting")), "{control}");
    for id in busy.iter().chain([&kept]) {
        other
            .wait_for(id, "Ready and nothing in its way", |resource| {
                resource["phase"] == "Ready" && resource["blockers"] == json!([])
            })
            .await;
    }
    assert_eq!(other.agents().len(), before, "one process each, none twice");
    for id in busy.iter().chain([&kept]) {
        other.delete(id).await;
        other.wait_for_phase(id, "Deleted").await;
    }
    other.stop().await;
}

/// There is no high-water mark and no newer state outside: the mode alone keeps
/// it from acting.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_in_place_observes_only_and_keeps_the_old_one_aside() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let first = plane.declare("first", 0).await;
    plane.wait_for_phase(&first, "Ready").await;
    plane.kill();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slipway.backup");
    let database = plane.data_dir().join("slipway.db");
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o644)).unwrap();
    // Nothing is running, and some commits are only in the write-ahead log.
    succeeds(&mut backup(&plane.data_dir(), &file));

    let text = refused(&mut restore(&plane.data_dir(), &file), "usage");
    assert!(text.contains("--yes"), "{text}");
    let restored = succeeds(restore(&plane.data_dir(), &file).arg("--yes"));
    let aside = Path::new(restored["kept_aside"].as_str().unwrap());
    assert!(names(aside).contains(&"slipway.db".to_owned()), "{:?}", names(aside));
    assert!(names(aside).contains(&"signing.pk8".to_owned()), "{:?}", names(aside));
    for file in [aside.join("slipway.db"), database] {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }

    plane.start().await;
    let control = plane.get("/api/v1/control").await;
    assert_eq!(control["mode"], "observing", "{control}");
    let reason = control["observing"]["reason"].as_str().unwrap();
    assert!(reason.contains("restored"), "{reason}");
    let second = plane.declare("second", 0).await;
    plane
        .wait_for(&second, "held back", |resource| {
            resource["blockers"][0]["code"] == "observe_only"
        })
        .await;
    assert_eq!(plane.agents().len(), 1, "nothing was started");
    let body = json!({ "reason": "looked" });
    assert_eq!(plane.call(Method::POST, "/api/v1/control/resume", Some(body)).await.0, 200);
    plane.wait_for_phase(&second, "Ready").await;
    plane.wait_for_phase(&first, "Ready").await;
    plane.stop().await;

    // The database that was kept aside starts.
    for journal in ["slipway.db-wal", "slipway.db-shm"] {
        let journal = plane.data_dir().join(journal);
        if journal.exists() {
            std::fs::remove_file(journal).unwrap();
        }
    }
    std::fs::copy(aside.join("slipway.db"), plane.data_dir().join("slipway.db")).unwrap();
    plane.start().await;
    assert_eq!(plane.resource(&first).await["handle"], "first");
    plane.stop().await;
}

/// The log of a lost database would be applied to the restored one.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_of_a_lost_database_is_not_applied_to_the_restored_one() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let first = plane.declare("first", 0).await;
    plane.wait_for_phase(&first, "Ready").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slipway.backup");
    succeeds(&mut backup(&plane.data_dir(), &file));
    let second = plane.declare("second", 0).await;
    plane.wait_for_phase(&second, "Ready").await;
    plane.kill();
    std::fs::remove_file(plane.data_dir().join("slipway.db")).unwrap();
    assert!(plane.data_dir().join("slipway.db-wal").exists(), "it was killed");

    let restored = succeeds(restore(&plane.data_dir(), &file).arg("--yes"));
    let aside = Path::new(restored["kept_aside"].as_str().unwrap());
    let kept = names(aside);
    for name in ["signing.pk8", "slipway.db-wal"] {
        assert!(kept.contains(&name.to_owned()), "{name}: {kept:?}");
    }
    assert!(!plane.data_dir().join("slipway.db-wal").exists());
    plane.start().await;
    let listed = plane.get("/api/v1/resources").await;
    let handles: Vec<_> = listed.as_array().unwrap().iter().map(|row| &row["handle"]).collect();
    assert_eq!(handles, ["first"], "as it was when the backup was taken");
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_backup_is_refused_and_nothing_is_touched() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    plane.stop().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let before = std::fs::read(plane.data_dir().join("slipway.db")).unwrap();

    refused(restore(&plane.data_dir(), &file).arg("--yes"), "io_failed");
    std::fs::write(&file, "not a database, whatever its name").unwrap();
    refused(restore(&plane.data_dir(), &file).arg("--yes"), "backup_invalid");
    // A database, but no backup.
    std::fs::copy(plane.data_dir().join("slipway.db"), &file).unwrap();
    refused(restore(&plane.data_dir(), &file).arg("--yes"), "backup_invalid");
    // A truncated backup.
    let whole = folder.path().join("whole");
    succeeds(&mut backup(&plane.data_dir(), &whole));
    let bytes = std::fs::read(&whole).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let output = run(restore(&plane.data_dir(), &file).arg("--yes"));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let damaged = ["error[backup_damaged]", "error[backup_invalid]"];
    assert!(damaged.iter().any(|code| text.contains(code)), "{text}");

    assert_eq!(std::fs::read(plane.data_dir().join("slipway.db")).unwrap(), before);
    let left = names(&plane.data_dir());
    assert!(!left.iter().any(|name| name.contains("restor")), "{left:?}");

    let nowhere = folder.path().join("nowhere");
    refused(&mut backup(&nowhere, &folder.path().join("x")), "database_not_found");
    assert!(!nowhere.exists() && !folder.path().join("x").exists());
    let into_nothing = folder.path().join("no/such/folder");
    assert!(
        refused(&mut backup(&plane.data_dir(), &into_nothing), "io_failed").contains("no/such")
    );
}

/// The old database stays, staged files are removed, and the next restore
/// works: even two within one second each keep what they found.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_fails_leaves_nothing_staged_and_the_next_ones_work() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    plane.stop().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup");
    succeeds(&mut backup(&plane.data_dir(), &file));
    // The temporary path of the signing key.
    let obstacle = plane.data_dir().join("signing.pk8.new");
    std::fs::create_dir(&obstacle).unwrap();
    refused(restore(&plane.data_dir(), &file).arg("--yes"), "io_failed");
    assert!(!names(&plane.data_dir()).contains(&"slipway.restoring".to_owned()));
    std::fs::remove_dir(&obstacle).unwrap();
    plane.start().await;
    assert_eq!(plane.get("/api/v1/control").await["mode"], "acting", "it is the old one");
    plane.stop().await;

    let mut aside = std::collections::BTreeSet::new();
    for _ in 0..4 {
        let restored = succeeds(restore(&plane.data_dir(), &file).arg("--yes"));
        let kept = restored["kept_aside"].as_str().unwrap().to_owned();
        assert!(Path::new(&kept).join("slipway.db").exists(), "{kept}");
        aside.insert(kept);
    }
    assert_eq!(aside.len(), 4, "{aside:?}");
}

#[test]
fn postgres_is_sent_to_its_own_tools() {
    let url = "postgres://me:hunter2@127.0.0.1:1/slipway";
    let folder = tempfile::tempdir().unwrap();
    for verb in ["backup", "restore"] {
        let mut command = binary();
        command.args([verb, "file", "--data-dir"]).arg(folder.path().join("data"));
        let text = refused(command.env("SLIPWAY_DATABASE_URL", url), "backup_not_sqlite");
        assert!(text.contains("pg_dump") && text.contains("pg_restore"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
