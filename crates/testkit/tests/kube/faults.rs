//! Servers that are killed, and test processes that are.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::Stdio;

use slipway_testkit::kube::{KubeEnvironment, Options, Part};
use slipway_testkit::process::{Signal, Spawned, is_alive, processes_with_argument};
use slipway_testkit::wait::until;

use crate::{TIMEOUT, apply, mk_client, mk_other_role, plays_other_role, value_of};

#[tokio::test]
async fn what_was_written_survives_the_death_of_each_server() {
    const NAME: &str = "what_was_written_survives_the_death_of_each_server";
    let options = Options::default();
    let Some(kubernetes) = KubeEnvironment::for_test(NAME, options).await else { return };
    let client = mk_client(&kubernetes.kubeconfig("admin")).await;
    apply(&client, "test", "kept", "1").await.unwrap();

    let before = kubernetes.pid(Part::ApiServer).unwrap();
    kubernetes.kill(Part::ApiServer).await.unwrap();
    assert!(!is_alive(before));
    assert_eq!(kubernetes.pid(Part::ApiServer), None);
    value_of(&client, "kept").await.expect_err("nobody answers");
    kubernetes.start_part(Part::ApiServer).await.unwrap();
    assert_ne!(kubernetes.pid(Part::ApiServer), Some(before));
    assert_eq!(value_of(&client, "kept").await.unwrap().as_deref(), Some("1"));

    kubernetes.restart(Part::Etcd).await.unwrap();
    assert_eq!(value_of(&client, "kept").await.unwrap().as_deref(), Some("1"));
    apply(&client, "test", "kept", "2").await.unwrap();

    let folder = kubernetes.folder().to_owned();
    drop(kubernetes);
    assert_eq!(processes_with_argument(folder.to_str().unwrap()).unwrap(), []);
    assert!(!folder.exists(), "{} was left behind", folder.display());
}

#[tokio::test]
async fn nothing_is_left_when_the_starter_is_killed() {
    const NAME: &str = "faults::nothing_is_left_when_the_starter_is_killed";
    if plays_other_role() {
        let options = Options { controller_manager: true, ..Options::default() };
        let kubernetes = KubeEnvironment::start(options).await.unwrap().unwrap();
        let folder = kubernetes.folder().display();
        std::io::stdout().write_all(format!("\nfolder={folder}\n").as_bytes()).unwrap();
        // The process is killed before this returns: nobody closes our input earlier.
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        return;
    }
    if slipway_testkit::kube::shared(NAME).await.is_none() {
        return;
    }
    let mut starter = Spawned::start(
        mk_other_role(NAME).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()),
    )
    .unwrap();
    let folder = BufReader::new(starter.child().stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("folder=").map(str::to_owned))
        .expect("the starter says where its servers are");
    until(TIMEOUT, "the keeper and its three servers", async || {
        let found = processes_with_argument(&folder).map_err(|error| error.to_string())?;
        if found.len() == 4 { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;

    starter.signal(Signal::Kill).unwrap();
    starter.exit(TIMEOUT).await.unwrap();
    until(TIMEOUT, "the end of the servers and their folder", async || {
        let processes = processes_with_argument(&folder).map_err(|error| error.to_string())?;
        let folder_exists = PathBuf::from(&folder).exists();
        if processes.is_empty() && !folder_exists {
            Ok(())
        } else {
            Err(format!("folder exists: {folder_exists}, processes: {processes:?}"))
        }
    })
    .await;
}
