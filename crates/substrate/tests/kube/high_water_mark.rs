//! The high-water mark of a cluster: it only grows, it costs no request while
//! nothing happens, and no engine acts before it was compared.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use slipway_app::ports::substrate::{Error, HighWaterMark, Substrate};

use crate::support::{Bench, NO_SWEEP, compare_mark, loose, mk_engine};

fn read(value: Option<i64>) -> HighWaterMark {
    HighWaterMark { value, fresh: true }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_acts_only_after_its_mark_was_compared() {
    let test = "an_engine_acts_only_after_its_mark_was_compared";
    let Some(bench) = Bench::new(test).await else { return };
    let composite = bench.composite(loose());
    let engine = mk_engine(&bench.kubeconfig, bench.installation, NO_SWEEP);
    let refused = engine.apply(&composite.rendered()).await.unwrap_err();
    assert!(matches!(&refused, Error::Failed(why) if why.contains("high-water mark")), "{refused}");
    let refused = engine.delete(&composite.address(), "uid").await.unwrap_err();
    assert!(refused.to_string().contains("high-water mark"), "{refused}");
    // Neither a read alone nor a comparison without a read counts.
    engine.high_water_mark_compared().await;
    engine.apply(&composite.rendered()).await.unwrap_err();
    assert!(!bench.object_exists(&composite).await);
    assert_eq!(engine.high_water_mark_read(false).await, Ok(read(None)));
    engine.apply(&composite.rendered()).await.unwrap_err();
    engine.high_water_mark_compared().await;
    engine.apply(&composite.rendered()).await.unwrap();
    assert!(bench.object_exists(&composite).await);
}

/// The same file leads to another cluster by now: it has a mark of its own.
#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_needs_a_comparison_of_its_own() {
    let test = "another_cluster_needs_a_comparison_of_its_own";
    let Some(bench) = Bench::new(test).await else { return };
    let engine = mk_engine(&bench.kubeconfig, bench.installation, NO_SWEEP);
    compare_mark(&engine).await;
    let composite = bench.composite(loose());
    engine.apply(&composite.rendered()).await.unwrap();
    // Nothing answers there, so nobody knows which cluster it is.
    let config = std::fs::read_to_string(&bench.kubeconfig).unwrap();
    let nowhere = config.replace(&bench.kubernetes.url(), "https://127.0.0.1:1");
    assert_ne!(nowhere, config, "the address stands in the file");
    std::fs::write(&bench.kubeconfig, nowhere).unwrap();
    engine.apply(&bench.composite(loose()).rendered()).await.unwrap_err();
    engine.high_water_mark_read(true).await.unwrap_err();
    // A heartbeat that could not read it has compared nothing.
    engine.high_water_mark_compared().await;
    std::fs::write(&bench.kubeconfig, config).unwrap();
    let refused = engine.apply(&bench.composite(loose()).rendered()).await.unwrap_err();
    assert!(refused.to_string().contains("high-water mark"), "{refused}");
    compare_mark(&engine).await;
    engine.apply(&bench.composite(loose()).rendered()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_is_no_number_is_an_error_and_stays() {
    let test = "content_that_is_no_number_is_an_error_and_stays";
    let Some(bench) = Bench::new(test).await else { return };
    let engine = mk_engine(&bench.kubeconfig, bench.installation, NO_SWEEP);
    let engine = engine.with_system_namespace(&bench.namespace);
    engine.high_water_mark_read(true).await.unwrap();
    engine.high_water_mark_write(7).await.unwrap();
    let marks = Api::<ConfigMap>::namespaced(bench.client.clone(), &bench.namespace);
    let name = format!("slipway-high-water-mark-{}", bench.installation);
    let broken = json!({ "data": { "heartbeat": "seven" } });
    marks.patch(&name, &PatchParams::default(), &Patch::Merge(&broken)).await.unwrap();
    let problem = engine.high_water_mark_read(true).await.unwrap_err();
    assert!(problem.to_string().contains("holds no number"), "{problem}");
    engine.high_water_mark_write(9).await.unwrap_err();
    let kept = marks.get(&name).await.unwrap().data.unwrap();
    assert_eq!(kept["heartbeat"], "seven", "never overwritten");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_only_grows_and_is_written_when_it_has_to_grow() {
    let test = "a_mark_only_grows_and_is_written_when_it_has_to_grow";
    let Some(bench) = Bench::new(test).await else { return };
    let engine = || {
        let engine = mk_engine(&bench.kubeconfig, bench.installation, NO_SWEEP);
        engine.with_system_namespace(&bench.namespace)
    };
    let (first, second) = (engine(), engine());
    assert_eq!(first.high_water_mark_read(false).await, Ok(read(None)));
    first.high_water_mark_write(7).await.unwrap();
    let requests = async || {
        let records = bench.kubernetes.received().unwrap();
        let mark = format!("/namespaces/{}/configmaps", bench.namespace);
        records.iter().filter(|record| record.uri.contains(&mark)).count()
    };
    let before = requests().await;
    for heartbeat in [7, 3, 7] {
        first.high_water_mark_write(heartbeat).await.unwrap();
        let known = HighWaterMark { value: Some(7), fresh: false };
        assert_eq!(first.high_water_mark_read(false).await, Ok(known));
    }
    assert_eq!(requests().await, before, "the mark is high enough and known");
    assert_eq!(second.high_water_mark_read(false).await, Ok(read(Some(7))));
    second.high_water_mark_write(9).await.unwrap();
    first.high_water_mark_write(8).await.unwrap();
    assert_eq!(first.high_water_mark_read(true).await, Ok(read(Some(9))), "the higher one stays");
    assert_eq!(engine().high_water_mark_read(false).await, Ok(read(Some(9))));
}
