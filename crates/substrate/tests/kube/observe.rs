//! Observation: what the index answers, and what proves an absence.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use serde_json::json;
use slipway_app::ports::substrate::{Error, Substrate};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::catalog::blueprint_version::CompositeScope;
use slipway_testkit::wait::until;

use crate::support::{
    Bench, TIMEOUT, define, global, is_absent, is_ready, is_unknown, loose, mk_kind, reason,
    report, typed,
};

#[tokio::test]
async fn what_is_watched_is_observed_without_a_request() {
    const NAME: &str = "what_is_watched_is_observed_without_a_request";
    let Some(bench) = Bench::new(NAME).await else { return };
    let composites: Vec<_> = [loose(), typed(), global(), loose(), typed()]
        .into_iter()
        .map(|kind| bench.composite(kind))
        .collect();
    for composite in &composites {
        bench.apply(composite).await;
        bench.make_ready(composite).await;
        bench.until(composite, "it is ready", is_ready).await;
    }
    let addresses: Vec<_> = composites.iter().map(|composite| composite.address()).collect();
    let (reports, verbs) = bench.verbs_of(bench.engine.observe(&addresses)).await;
    assert!(reports.iter().all(is_ready), "{reports:?}");
    assert_eq!(verbs, [""; 0]);
}

#[tokio::test]
async fn conditions_become_facts() {
    let Some(bench) = Bench::new("conditions_become_facts").await else { return };
    let composite = bench.composite(loose());
    bench.apply(&composite).await;
    let table = [
        (json!([{ "type": "Synced", "status": "False", "message": "no quota" }]), (false, None)),
        (json!([{ "type": "Ready", "status": "False" }]), (false, None)),
        (json!([{ "type": "Ready", "status": "True" }]), (true, None)),
        (
            json!([{ "type": "ProvisioningFailed", "status": "True", "message": "no such image" }]),
            (false, Some("no such image")),
        ),
    ];
    for (conditions, (ready, failure)) in table {
        bench.conditions(&composite, conditions.clone()).await;
        let seen = |report: &CompositeReport| {
            report.live().is_some_and(|live| {
                live.evidence["conditions"][0]["type"] == conditions[0]["type"]
                    && live.ready == ready
                    && live.failure.as_deref() == failure
                    && !live.terminating
            })
        };
        bench.until(&composite, "the condition is seen", seen).await;
    }
    bench.objects(&composite).delete(&composite.name(), &Default::default()).await.unwrap();
    let terminating = |report: &CompositeReport| report.live().is_some_and(|live| live.terminating);
    bench.until(&composite, "it is terminating", terminating).await;
}

#[tokio::test]
async fn an_absence_is_the_servers_own_word() {
    let Some(bench) = Bench::new("an_absence_is_the_servers_own_word").await else { return };
    for kind in [loose(), global()] {
        // Makes sure that the watch runs, so that its start sends no requests below.
        let there = bench.composite(kind.clone());
        bench.apply(&there).await;
        let absent = bench.composite(kind);
        let (report, verbs) = bench.verbs_of(bench.report(&absent)).await;
        assert!(is_absent(&report), "{report:?}");
        // Requests of cluster scope cannot be told from those of other tests.
        if absent.kind.scope == CompositeScope::Namespaced {
            assert_eq!(verbs, ["get"]);
        }
    }
}

#[tokio::test]
async fn a_kind_that_the_server_does_not_know_is_unknown() {
    const NAME: &str = "a_kind_that_the_server_does_not_know_is_unknown";
    let Some(bench) = Bench::new(NAME).await else { return };
    for scope in [CompositeScope::Namespaced, CompositeScope::Cluster] {
        let composite = bench.composite(mk_kind("XNowhere", scope));
        let report = bench.report(&composite).await;
        assert!(is_unknown(&report), "{report:?}");
        assert!(reason(&report).contains("does not know this kind"), "{report:?}");
        let refused = bench.engine.apply(&composite.rendered()).await.unwrap_err();
        assert!(matches!(refused, Error::Failed(_)), "{refused:?}");
    }
}

/// One composite has our finalizer, from the other somebody removed it. When the
/// kind is deleted, the latter goes with it, and neither is ever Absent.
#[tokio::test]
async fn a_kind_that_is_removed_proves_nothing_gone() {
    const NAME: &str = "a_kind_that_is_removed_proves_nothing_gone";
    let Some(bench) = Bench::new(NAME).await else { return };
    let kind = mk_kind("XRemoved", CompositeScope::Namespaced);
    define(&bench.client, &kind).await;
    let held = bench.composite(kind.clone());
    let bare = bench.composite(kind.clone());
    let uid = bench.apply(&held).await.uid;
    bench.apply(&bare).await;
    bench.write(&bare, json!({ "metadata": { "finalizers": null } })).await;

    let definitions = Api::<CustomResourceDefinition>::all(bench.client.clone());
    let name = format!("{}.{}", kind.plural, kind.group);
    definitions.delete(&name, &Default::default()).await.unwrap();
    let never_absent = |report: &CompositeReport| assert!(!is_absent(report), "{report:?}");
    bench
        .until(&held, "it is told to go with its kind", |report| {
            never_absent(report);
            report.live().is_some_and(|live| live.terminating)
        })
        .await;
    let report = bench
        .until(&bare, "it went with its kind", |report| {
            never_absent(report);
            is_unknown(report)
        })
        .await;
    assert!(reason(&report).contains("is being removed"), "{report:?}");
    // The kind still exists: the object with our finalizer keeps it.
    bench.engine.delete(&held.address(), &uid).await.unwrap();
    for composite in [&held, &bare] {
        let report = bench
            .until(composite, "the kind is gone", |report| {
                never_absent(report);
                is_unknown(report) && reason(report).contains("does not know this kind")
            })
            .await;
        never_absent(&report);
    }
    // A kind that is defined again is served without a restart of the engine.
    until(TIMEOUT, "the end of the definition", async || {
        definitions.get_opt(&name).await.unwrap().is_none()
    })
    .await;
    define(&bench.client, &kind).await;
    bench.until(&held, "the kind is back, and the object is not", is_absent).await;
}

#[tokio::test]
async fn another_cluster_is_unknown() {
    let Some(bench) = Bench::new("another_cluster_is_unknown").await else { return };
    let (there, absent) = (bench.composite(loose()), bench.composite(loose()));
    let uid = bench.apply(&there).await.uid;
    let right = bench.engine.identity().await.unwrap();
    let mut addresses = Vec::new();
    for recorded in [right.as_str(), "another"] {
        for composite in [&there, &absent] {
            let mut address = composite.address();
            address.substrate_uid = Some(recorded.to_owned());
            addresses.push(address);
        }
    }
    // In both orders: the answer for one address is not reused for another.
    for order in [[0, 1, 2, 3], [3, 2, 1, 0]] {
        let asked: Vec<_> = order.iter().map(|at| addresses[*at].clone()).collect();
        for (at, report) in order.iter().zip(bench.engine.observe(&asked).await) {
            match at {
                0 => assert!(report.live().is_some(), "{report:?}"),
                1 => assert!(is_absent(&report), "{report:?}"),
                _ => assert!(reason(&report).contains("another cluster"), "{report:?}"),
            }
        }
    }
    let refused = bench.engine.delete(&addresses[2], &uid).await.unwrap_err();
    assert!(refused.to_string().contains("another cluster"), "{refused}");
    // An engine that has just started does not know more.
    let another = bench.another_engine().await;
    assert!(is_unknown(&report(&another, &addresses[2]).await));
    let live = bench.live(&there).await;
    assert!(!live.terminating, "{live:?}");
}
