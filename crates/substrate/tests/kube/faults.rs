//! Servers that go away and come back, credentials that change, rights that are
//! missing. One environment for all, one test at a time.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use slipway_app::ports::Management;
use slipway_app::ports::substrate::Substrate;
use slipway_testkit::kube::{ADMIN, KubeEnvironment, Options, Part, User, shared};
use slipway_testkit::wait::until;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use crate::support::{
    Bench, Composite, TIMEOUT, is_absent, is_ready, is_unknown, loose, reason, until_named,
};

const ROTATED: &str = "rotated";
const UNWATCHING: &str = "unwatching";
const UNDELETING: &str = "undeleting";
const SWEEP: Duration = Duration::from_secs(600);

static SERIAL: Mutex<()> = Mutex::const_new(());
static DEFINED: OnceCell<()> = OnceCell::const_new();

/// The environment, with the lock that lets one test at a time break it.
async fn breakable(test: &str) -> Option<(&'static KubeEnvironment, MutexGuard<'static, ()>)> {
    static ENVIRONMENT: OnceCell<Option<KubeEnvironment>> = OnceCell::const_new();
    let permit = SERIAL.lock().await;
    let users = vec![
        User::named(ROTATED).in_group("system:masters"),
        User::named(UNWATCHING),
        User::named(UNDELETING),
    ];
    let options = Options { users, ..Options::default() };
    let started = ENVIRONMENT.get_or_init(|| KubeEnvironment::for_test(test, options)).await;
    Some((started.as_ref()?, permit))
}

async fn mk_bench(kubernetes: &'static KubeEnvironment, user: &str) -> Bench {
    Bench::on(kubernetes, &kubernetes.kubeconfig(user), SWEEP, &DEFINED).await
}

/// A composite that exists, and one that never did.
async fn mk_pair(bench: &Bench) -> (Composite, Composite) {
    let (there, never) = (bench.composite(loose()), bench.composite(loose()));
    bench.apply(&there).await;
    assert!(is_absent(&bench.report(&never).await));
    (there, never)
}

/// Asserts that changes are reported and observations work.
async fn assert_well(bench: &Bench, there: &Composite, never: &Composite) {
    bench.until(never, "the absence is proven again", is_absent).await;
    bench.until(there, "it is seen again", |report| report.live().is_some()).await;
    // Waits for a change that happens now, after the fault.
    let told = until_named(&bench.engine, there.id);
    let (_, ()) = futures::future::join(bench.make_ready(there), told).await;
    bench.until(there, "it is ready", is_ready).await;
}

#[tokio::test]
async fn an_api_server_that_is_away_proves_nothing_and_comes_back() {
    const NAME: &str = "an_api_server_that_is_away_proves_nothing_and_comes_back";
    let Some((kubernetes, _permit)) = breakable(NAME).await else { return };
    let bench = mk_bench(kubernetes, ADMIN).await;
    let (there, never) = mk_pair(&bench).await;
    kubernetes.kill(Part::ApiServer).await.unwrap();
    let report = bench.report(&never).await;
    assert!(is_unknown(&report), "{report:?}");
    bench
        .until(&there, "it is not known", |report| {
            assert!(!is_absent(report));
            is_unknown(report)
        })
        .await;
    let refused = bench.engine.apply(&never.rendered()).await.unwrap_err().to_string();
    assert!(refused.contains("does not answer"), "{refused}");
    kubernetes.start_part(Part::ApiServer).await.unwrap();
    assert_well(&bench, &there, &never).await;
}

#[tokio::test]
async fn an_etcd_that_is_away_proves_nothing_and_comes_back() {
    const NAME: &str = "an_etcd_that_is_away_proves_nothing_and_comes_back";
    let Some((kubernetes, _permit)) = breakable(NAME).await else { return };
    let bench = mk_bench(kubernetes, ADMIN).await;
    let (there, never) = mk_pair(&bench).await;
    kubernetes.kill(Part::Etcd).await.unwrap();
    let report = bench.report(&never).await;
    assert!(is_unknown(&report), "{report:?}");
    let report = bench.report(&there).await;
    assert!(!is_absent(&report), "{report:?}");
    kubernetes.start_part(Part::Etcd).await.unwrap();
    assert_well(&bench, &there, &never).await;
}

#[tokio::test]
async fn a_token_is_rotated_without_a_restart() {
    const NAME: &str = "a_token_is_rotated_without_a_restart";
    let Some((kubernetes, _permit)) = breakable(NAME).await else { return };
    let bench = mk_bench(kubernetes, ROTATED).await;
    let (there, never) = mk_pair(&bench).await;
    kubernetes.rotate_token(ROTATED).await.unwrap();
    // The file does not have the new token yet.
    for composite in [&there, &never] {
        let refused = |report: &_| is_unknown(report) && reason(report).contains("credentials");
        let report = bench.until(composite, "it is refused", refused).await;
        assert!(reason(&report).contains("renew the kubeconfig"), "{report:?}");
    }
    std::fs::write(&bench.kubeconfig, kubernetes.kubeconfig(ROTATED)).unwrap();
    assert_well(&bench, &there, &never).await;
}

/// The kubeconfig is replaced by one of another cluster.
#[tokio::test]
async fn a_kubeconfig_of_another_cluster_proves_nothing() {
    const NAME: &str = "a_kubeconfig_of_another_cluster_proves_nothing";
    let Some(other) = shared(NAME).await else { return };
    let Some((kubernetes, _permit)) = breakable(NAME).await else { return };
    let Some(elsewhere) = Bench::new(NAME).await else { return };
    let bench = mk_bench(kubernetes, ADMIN).await;
    let (there, never) = mk_pair(&bench).await;
    let identity = bench.engine.identity().await.unwrap();
    let addresses = [&there, &never].map(|composite| {
        let mut address = composite.address();
        address.substrate_uid = Some(identity.clone());
        address
    });
    let [seen, absent] = &bench.engine.observe(&addresses).await[..] else { panic!("two") };
    assert!(seen.live().is_some() && is_absent(absent));
    assert_eq!(bench.engine.verify().await.unwrap().identity, identity);
    std::fs::write(&bench.kubeconfig, other.kubeconfig(ADMIN)).unwrap();
    // A known identity counts for minutes, but only for one client.
    assert_ne!(bench.engine.verify().await.unwrap().identity, identity);
    // The next request notices the file; from then on every report is Unknown.
    assert_ne!(bench.engine.identity().await.unwrap(), identity);
    until(TIMEOUT, "nothing is known of either", async || {
        let reports = bench.engine.observe(&addresses).await;
        assert!(!reports.iter().any(is_absent), "{reports:?}");
        let known = !reports.iter().all(is_unknown);
        if known { Err(format!("{reports:?}")) } else { Ok(()) }
    })
    .await;
    drop(elsewhere);
}

async fn grant(kubernetes: &KubeEnvironment, user: &str, verbs: &[&str]) {
    let client = kubernetes.client(ADMIN).await.unwrap();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": user },
        "rules": [
            { "apiGroups": ["nodes.example.org"], "resources": ["*"], "verbs": verbs },
            { "apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"] },
            { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"] },
            {
                "apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"], "verbs": ["get"],
            },
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": user },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    });
    let (parameters, named) =
        (PatchParams::apply("test"), |body: &Value| Patch::Apply(body.clone()));
    let roles = Api::<ClusterRole>::all(client.clone());
    roles.patch(user, &parameters, &named(&role)).await.unwrap();
    let bindings = Api::<ClusterRoleBinding>::all(client);
    bindings.patch(user, &parameters, &named(&binding)).await.unwrap();
    // A binding is in force a moment after it was written.
    let theirs = Api::<ConfigMap>::all(kubernetes.client(user).await.unwrap());
    until(TIMEOUT, "the rights", async || theirs.list(&Default::default()).await).await;
}

#[tokio::test]
async fn who_may_not_watch_asks() {
    const NAME: &str = "who_may_not_watch_asks";
    let Some((kubernetes, _permit)) = breakable(NAME).await else { return };
    grant(kubernetes, UNWATCHING, &["get", "list", "create", "patch", "delete"]).await;
    let bench = mk_bench(kubernetes, UNWATCHING).await;
    let (there, never) = (bench.composite(loose()), bench.composite(loose()));
    // A binding is in force a moment after it was written.
    until(TIMEOUT, "the rights", async || bench.engine.apply(&there.rendered()).await).await;
    bench.make_ready(&there).await;
    until_named(&bench.engine, there.id).await;
    bench.until(&there, "it is ready", is_ready).await;
    bench.until(&never, "the absence is proven", is_absent).await;
    let requests = bench.requests();
    let lists = requests.iter().filter(|record| record.verb == "list").count();
    // The lists are 50, 100, 200 … ms apart during this test.
    assert!(lists <= 20, "everything is listed again and again: {lists} times");
}

#[tokio::test]
async fn who_may_not_delete_is_told_what_to_grant() {
    const NAME: &str = "who_may_not_delete_is_told_what_to_grant";
    let Some((kubernetes, _permit)) = breakable(NAME).await else { return };
    grant(kubernetes, UNDELETING, &["get", "list", "watch", "create", "patch"]).await;
    let bench = mk_bench(kubernetes, UNDELETING).await;
    let there = bench.composite(loose());
    until(TIMEOUT, "the rights", async || bench.engine.apply(&there.rendered()).await).await;
    let uid = bench.live(&there).await.uid;
    let refused = bench.engine.delete(&there.address(), &uid).await.unwrap_err().to_string();
    for part in ["cannot delete resource", "xservers", "grant it to our account"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(!bench.live(&there).await.terminating);
}
