//! The control plane does not answer for an hour, on a clock that the test moves: an agent asks
//! again and again within limits, changes nothing, and converges with the first answer.

use std::time::Duration;

use slipway_agent::fleet::Options;
use tokio::time::{Instant, sleep};

use crate::directory::{Folder, objects};
use crate::stand_in::{Agent, StandIn, config_map};

const CUT: Duration = Duration::from_secs(3_600);

/// A request ends after 10 s without an answer (40 s if the server may hold its answer back), and
/// the next one follows within 5 s.
const SLOWEST: Duration = Duration::from_secs(45);

#[tokio::test(start_paused = true)]
async fn an_hour_without_the_server_changes_nothing_and_ends_with_the_first_answer() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let options = Options { poll: Duration::from_secs(10), ..server.options(folder.target()) };
    let agent = Agent::start(options);
    for number in 1..=4 {
        let object = server.offer(number, &config_map("n", &format!("s{number}"), "1"));
        server.reported(&object, "DEPLOY", "SUCCESS").await;
    }
    let before = objects(folder.path());
    assert_eq!(before.len(), 4);

    // Meanwhile one stack is changed, one deleted, one forgotten, and one stays.
    server.script(|calls| calls.is_cut = true);
    let changed = server.offer(1, &config_map("n", "s1", "2"));
    let marker = server.mark(2);
    server.withdraw(3);
    let begun = Instant::now();
    let mut last = 0;
    while begun.elapsed() < CUT {
        sleep(SLOWEST).await;
        let calls = server.calls();
        assert!(calls.unanswered > last, "it gave up after {:?}", begun.elapsed());
        last = calls.unanswered;
        assert_eq!(objects(folder.path()), before, "after {:?}", begun.elapsed());
    }
    // Two loops ask: passes, and heartbeats. A pause is at least 2.5 s after the first few.
    let most = 2 * CUT.as_secs() / 10;
    assert!(u64::try_from(last).unwrap() < most, "{last} requests in an hour");

    let polls = server.calls().polls;
    server.script(|calls| calls.is_cut = false);
    let back = Instant::now();
    server.reported(&changed, "DEPLOY", "SUCCESS").await;
    let calls = server.reported(&marker, "DELETE", "SUCCESS").await;
    assert_eq!(calls.status, "SUCCESS");
    assert!(back.elapsed() < SLOWEST, "{:?}", back.elapsed());
    let calls = server.calls();
    assert!(calls.polls <= polls + 2, "{} answers", calls.polls - polls);
    let found = objects(folder.path());
    assert_eq!(found["ConfigMap n/s1"].0["data"]["value"], "2");
    assert!(!found.contains_key("ConfigMap n/s2"), "{found:?}");
    // What is merely absent waits for a person: it is a quarter and more of what the agent has.
    assert!(found.contains_key("ConfigMap n/s3") && found.contains_key("ConfigMap n/s4"));
    server.until("a refusal", |calls| !calls.refusals.is_empty()).await;
    agent.stop().await;
}
