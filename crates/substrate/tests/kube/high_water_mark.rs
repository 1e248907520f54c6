//! The high-water mark of a cluster: it only grows, it costs no request while
//! nothing happens, and no engine acts before it was compared.

use slipway_app::ports::substrate::{Error, Substrate};

use crate::support::{Bench, NO_SWEEP, loose, mk_engine};

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
    // A write without a read does not count as a comparison.
    engine.high_water_mark_write(1).await.unwrap_err();
    engine.apply(&composite.rendered()).await.unwrap_err();
    assert!(!bench.object_exists(&composite).await);
    // A heartbeat reads and compares the mark, and then raises it.
    assert_eq!(engine.high_water_mark_read().await, Ok(None));
    engine.apply(&composite.rendered()).await.unwrap_err();
    engine.high_water_mark_write(1).await.unwrap_err();
    engine.apply(&composite.rendered()).await.unwrap();
    assert!(bench.object_exists(&composite).await);
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
    assert_eq!(first.high_water_mark_read().await, Ok(None));
    first.high_water_mark_write(7).await.unwrap();
    let requests = async || {
        let records = bench.kubernetes.audit().unwrap();
        let mark = format!("/namespaces/{}/configmaps", bench.namespace);
        records.iter().filter(|record| record.uri.contains(&mark)).count()
    };
    let before = requests().await;
    for heartbeat in [7, 3, 7] {
        first.high_water_mark_write(heartbeat).await.unwrap();
        assert_eq!(first.high_water_mark_read().await, Ok(Some(7)));
    }
    assert_eq!(requests().await, before, "the mark is high enough and known");
    assert_eq!(second.high_water_mark_read().await, Ok(Some(7)));
    second.high_water_mark_write(9).await.unwrap();
    first.high_water_mark_write(8).await.unwrap();
    assert_eq!(first.high_water_mark_read().await, Ok(Some(9)), "the higher one stays");
    assert_eq!(engine().high_water_mark_read().await, Ok(Some(9)));
}
