//! What a client sees of each fault, and what the API server does meanwhile.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams, Preconditions, WatchEvent, WatchParams};
use serde_json::json;
use slipway_testkit::kube::{
    ADMIN, Exchange, Fault, FaultProxy, Odds, Rule, refusal, shared, watch_expired,
};
use slipway_testkit::wait::until;

use crate::{TIMEOUT, apply, mk_client, value_of};

/// A proxy, a client of it and a client of the server itself.
struct Bench {
    proxy: FaultProxy,
    through: Client,
    direct: Client,
}

impl Bench {
    async fn new(test: &str) -> Option<Self> {
        let kubernetes = shared(test).await?;
        let kubeconfig = kubernetes.kubeconfig(ADMIN);
        let proxy = FaultProxy::before(kubernetes).await;
        let through = mk_client(&proxy.redirect(&kubeconfig)).await;
        Some(Self { proxy, through, direct: mk_client(&kubeconfig).await })
    }

    /// The exchanges of writes, with those that are not answered yet.
    fn writes(&self) -> Vec<Exchange> {
        let exchanges = self.proxy.exchanges().into_iter();
        exchanges.filter(|exchange| exchange.method != "GET").collect()
    }

    /// Waits until the only write was answered so many times.
    async fn until_answered(&self, times: usize) -> Exchange {
        until(TIMEOUT, "the answers of the server", async || {
            let mut writes = self.writes();
            assert_eq!(writes.len(), 1, "{writes:?}");
            let write = writes.remove(0);
            if write.statuses().len() == times { Ok(write) } else { Err(format!("{write:?}")) }
        })
        .await
    }

    async fn value(&self, name: &str) -> Option<String> {
        value_of(&self.direct, name).await.expect("the server answers")
    }
}

/// Whether the connection broke, which says nothing about the request.
fn is_cut(error: &kube::Error) -> bool {
    !matches!(error, kube::Error::Api(_))
}

#[tokio::test]
async fn without_faults_requests_and_watches_pass() {
    const NAME: &str = "without_faults_requests_and_watches_pass";
    let Some(bench) = Bench::new(NAME).await else { return };
    for number in ["1", "2"] {
        apply(&bench.through, "test", "passing", number).await.unwrap();
        assert_eq!(value_of(&bench.through, "passing").await.unwrap().as_deref(), Some(number));
    }
    assert_eq!(value_of(&bench.through, "nothing").await.unwrap(), None);
    let statuses: Vec<_> = bench.proxy.exchanges().iter().flat_map(Exchange::statuses).collect();
    assert_eq!(statuses, [201, 200, 200, 200, 404]);
    assert_eq!(bench.proxy.counts().len(), 0);

    let maps = Api::<ConfigMap>::namespaced(bench.through.clone(), "default");
    let only = WatchParams::default().fields("metadata.name=passing");
    let mut events = maps.watch(&only, "0").await.unwrap().boxed();
    for number in ["2", "3"] {
        let event = events.try_next().await.unwrap().unwrap();
        let (WatchEvent::Added(map) | WatchEvent::Modified(map)) = event else {
            panic!("{event:?}")
        };
        assert_eq!(map.data.unwrap()["key"], number);
        apply(&bench.direct, "test", "passing", "3").await.unwrap();
    }
}

#[tokio::test]
async fn the_proxy_answers_or_loses_what_a_rule_names() {
    const NAME: &str = "the_proxy_answers_or_loses_what_a_rule_names";
    let Some(bench) = Bench::new(NAME).await else { return };
    // The client repeats a request by itself that is answered 429 or 503.
    let broken = Fault::Answer(refusal(500, "InternalError"));
    bench.proxy.add(Rule::new(broken).method("PATCH").path("/configmaps/refused").times(1));
    bench.proxy.add(Rule::new(Fault::Lose).method("PATCH").times(1));
    let refused = apply(&bench.through, "test", "refused", "1").await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 500), "{refused:?}");
    let lost = apply(&bench.through, "test", "refused", "2").await.unwrap_err();
    assert!(is_cut(&lost), "{lost:?}");
    assert!(bench.writes().iter().all(|write| write.forwarded.is_empty()));
    assert_eq!(bench.value("refused").await, None);
    apply(&bench.through, "test", "refused", "3").await.unwrap();
    assert_eq!(bench.value("refused").await.as_deref(), Some("3"));

    bench.proxy.add(Rule::new(Fault::Answer(watch_expired())).path("watch=true"));
    let maps = Api::<ConfigMap>::namespaced(bench.through.clone(), "default");
    let mut events = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let event = events.try_next().await.unwrap().unwrap();
    assert!(matches!(&event, WatchEvent::Error(status) if status.code == 410), "{event:?}");
}

#[tokio::test]
async fn a_delayed_request_is_answered_later() {
    const NAME: &str = "a_delayed_request_is_answered_later";
    const DELAY: Duration = Duration::from_millis(150);
    let Some(bench) = Bench::new(NAME).await else { return };
    bench.proxy.add(Rule::new(Fault::Delay(DELAY)).method("PATCH"));
    let begun = Instant::now();
    apply(&bench.through, "test", "delayed", "1").await.unwrap();
    assert!(begun.elapsed() >= DELAY, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_dropped_answer_is_a_cut_connection_and_a_request_that_landed() {
    const NAME: &str = "a_dropped_answer_is_a_cut_connection_and_a_request_that_landed";
    let Some(bench) = Bench::new(NAME).await else { return };
    bench.proxy.add(Rule::new(Fault::DropAnswer).method("PATCH").times(1));
    let cut = apply(&bench.through, "test", "dropped", "1").await.unwrap_err();
    assert!(is_cut(&cut), "{cut:?}");
    assert_eq!(bench.value("dropped").await.as_deref(), Some("1"));
    assert_eq!(bench.until_answered(1).await.statuses(), [201]);
}

#[tokio::test]
async fn a_request_lands_after_its_client_was_cut() {
    const NAME: &str = "a_request_lands_after_its_client_was_cut";
    const LATER: Duration = Duration::from_millis(300);
    let Some(bench) = Bench::new(NAME).await else { return };
    bench.proxy.add(Rule::new(Fault::CutThenForward(LATER)).method("PATCH").times(1));
    let cut = apply(&bench.through, "test", "late", "1").await.unwrap_err();
    assert!(is_cut(&cut), "{cut:?}");
    assert!(bench.writes()[0].forwarded.is_empty(), "the client is cut at once");
    let landed = bench.until_answered(1).await;
    assert_eq!(landed.statuses(), [201]);
    assert!(landed.forwarded[0].at.duration_since(landed.received) >= LATER, "{landed:?}");
    assert_eq!(bench.value("late").await.as_deref(), Some("1"));
}

/// The precondition of a delete is what makes it harmless when it lands late.
#[tokio::test]
async fn a_held_delete_lands_when_the_test_says_so() {
    const NAME: &str = "a_held_delete_lands_when_the_test_says_so";
    let Some(bench) = Bench::new(NAME).await else { return };
    let read = apply(&bench.direct, "test", "deleted", "1").await.unwrap().metadata;
    let conditions = Preconditions { uid: read.uid, resource_version: read.resource_version };
    let parameters = DeleteParams::default().preconditions(conditions);
    let maps = Api::<ConfigMap>::namespaced(bench.through.clone(), "default");
    bench.proxy.add(Rule::new(Fault::CutThenHold).method("DELETE").times(1));
    let cut = maps.delete("deleted", &parameters).await.unwrap_err();
    assert!(is_cut(&cut), "{cut:?}");
    apply(&bench.direct, "test", "deleted", "2").await.unwrap();
    until(TIMEOUT, "the delete is held", async || bench.proxy.waiting() == 1).await;
    assert_eq!(bench.proxy.release().await, 1);
    assert_eq!(bench.until_answered(1).await.statuses(), [409]);
    assert_eq!(bench.value("deleted").await.as_deref(), Some("2"));
    assert_eq!(bench.proxy.release().await, 0);
}

#[tokio::test]
async fn a_duplicated_request_lands_twice_and_is_answered_once() {
    const NAME: &str = "a_duplicated_request_lands_twice_and_is_answered_once";
    let Some(bench) = Bench::new(NAME).await else { return };
    bench.proxy.add(Rule::new(Fault::Duplicate(Duration::ZERO)).method("POST").times(1));
    let maps = Api::<ConfigMap>::namespaced(bench.through.clone(), "default");
    let map: ConfigMap =
        serde_json::from_value(json!({ "metadata": { "name": "duplicated" } })).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    assert_eq!(bench.until_answered(2).await.statuses(), [201, 409]);
}

#[tokio::test]
async fn everything_is_held_until_released_also_for_a_client_that_gave_up() {
    const NAME: &str = "everything_is_held_until_released_also_for_a_client_that_gave_up";
    let Some(bench) = Bench::new(NAME).await else { return };
    bench.proxy.add(Rule::new(Fault::Hold));
    let client = bench.through.clone();
    let gives_up = tokio::spawn(async move { apply(&client, "test", "gave-up", "1").await });
    until(TIMEOUT, "the first is held", async || bench.proxy.waiting() == 1).await;
    gives_up.abort();
    gives_up.await.unwrap_err();
    let client = bench.through.clone();
    let waits = tokio::spawn(async move { apply(&client, "test", "waits", "1").await });
    until(TIMEOUT, "the second is held", async || bench.proxy.waiting() == 2).await;
    assert_eq!((bench.value("gave-up").await, bench.value("waits").await), (None, None));
    bench.proxy.clear();
    assert_eq!(bench.proxy.release().await, 2);
    waits.await.unwrap().unwrap();
    assert_eq!(bench.value("gave-up").await.as_deref(), Some("1"));
    assert_eq!(bench.value("waits").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn random_faults_follow_the_seed_and_end_when_they_are_cleared() {
    const NAME: &str = "random_faults_follow_the_seed_and_end_when_they_are_cleared";
    const REQUESTS: usize = 60;
    let Some(bench) = Bench::new(NAME).await else { return };
    let longest = Duration::from_millis(5);
    let odds = Odds {
        refuse: 150,
        lose: 150,
        delay: 150,
        drop_answer: 150,
        cut_then_forward: 150,
        duplicate: 150,
        longest,
    };
    let mut runs = Vec::new();
    for _ in 0..2 {
        let before = bench.writes().len();
        bench.proxy.randomize(7, odds, Odds::default());
        for number in 0..REQUESTS {
            // What becomes of it is the business of its fault.
            let _any = apply(&bench.through, "test", "random", &number.to_string()).await;
        }
        let faults = bench.writes().into_iter().skip(before).map(|write| write.fault);
        runs.push(faults.collect::<Vec<_>>());
    }
    assert_eq!(runs[0], runs[1]);
    // More than asked for: the client repeats what was refused with 503.
    assert!(runs[0].len() > REQUESTS, "{}", runs[0].len());
    assert_eq!(bench.proxy.counts().len(), 6, "{:?}", bench.proxy.counts());
    bench.proxy.clear();
    until(TIMEOUT, "what was to land has landed", async || {
        let is_complete = |write: &Exchange| match write.fault {
            Some(Fault::Answer(_) | Fault::Lose) => write.forwarded.is_empty(),
            Some(Fault::Duplicate(_)) => write.statuses().len() == 2,
            _ => write.statuses().len() == 1,
        };
        let writes = bench.writes();
        writes
            .iter()
            .find(|write| !is_complete(write))
            .map_or(Ok(()), |open| Err(format!("{open:?}")))
    })
    .await;
    apply(&bench.through, "test", "random", "last").await.unwrap();
    assert_eq!(bench.value("random").await.as_deref(), Some("last"));
}
