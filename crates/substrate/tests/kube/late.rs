//! Requests that land after their client gave up, when a newer claim has acted:
//! the table in `crossplane/act.rs`, line by line, then shared objects,
//! definitions and the high-water mark.

use serde_json::{Value, json};
use slipway_app::ports::substrate::{Error, Substrate};
use slipway_core::broker::observation::CompositeReport;
use slipway_render::composite;
use slipway_substrate::crossplane::CrossplaneSubstrate;
use slipway_testkit::kube::{ADMIN, Fault, FaultProxy, Rule, shared};
use slipway_testkit::wait::until;

use crate::support::{Bench, Composite, TIMEOUT, is_absent, loose, report};

/// A replica behind a proxy whose requests may land late, and a newer one.
pub(crate) struct Late {
    pub(crate) proxy: FaultProxy,
    pub(crate) bench: Bench,
    pub(crate) newer: CrossplaneSubstrate,
}

impl Late {
    pub(crate) async fn new(test: &str) -> Option<Self> {
        let kubernetes = shared(test).await?;
        let proxy = FaultProxy::before(kubernetes).await;
        let kubeconfig = proxy.redirect(&kubernetes.kubeconfig(ADMIN));
        let bench = Bench::through(test, &kubeconfig, None).await?;
        let newer = bench.another_engine().await;
        Some(Self { proxy, bench, newer })
    }

    /// The next request of this kind is cut from its client, and lands at
    /// [`Self::land`].
    pub(crate) fn hold(&self, method: &str, path: &str) {
        let rule = Rule::new(Fault::CutThenHold).method(method).path(path).times(1);
        self.proxy.add(rule);
    }

    /// Lets the held request land, and returns the answer that nobody got.
    pub(crate) async fn land(&self) -> u16 {
        assert_eq!(self.proxy.release().await, 1, "one request is held");
        let exchanges = self.proxy.exchanges();
        let mut held = exchanges.iter().filter(|one| one.fault == Some(Fault::CutThenHold));
        held.next_back().unwrap().statuses()[0]
    }

    /// An apply of the older claim whose answer is lost.
    async fn apply_late(&self, composite: &Composite) {
        self.hold("PATCH", &composite.name());
        let lost = self.bench.engine.apply(&composite.rendered()).await.unwrap_err();
        assert!(
            matches!(&lost, Error::Unanswered(why) if why.contains("does not answer")),
            "{lost}"
        );
    }

    async fn newer_applies(&self, composite: &Composite) {
        self.newer.apply(&composite.rendered()).await.unwrap();
    }

    /// Deletes as the newer claim, until it is gone and its engine has seen that.
    async fn newer_deletes(&self, composite: &Composite) {
        let uid = self.bench.object(composite).await["metadata"]["uid"].clone();
        let (address, uid) = (composite.address(), uid.as_str().unwrap().to_owned());
        until(TIMEOUT, "it is gone", async || {
            self.newer.delete(&address, &uid).await.unwrap();
            !self.bench.object_exists(composite).await
        })
        .await;
        self.until_newer(composite, "the newer engine sees it gone", is_absent).await;
    }

    async fn until_newer(
        &self,
        composite: &Composite,
        what: &str,
        condition: impl Fn(&CompositeReport) -> bool,
    ) {
        until(TIMEOUT, what, async || condition(&report(&self.newer, &composite.address()).await))
            .await;
    }

    /// Asserts under which claim, and with which content, the object is.
    async fn assert_is(&self, composite: &Composite) {
        let object = self.bench.object(composite).await;
        assert_eq!(
            object["spec"]["parameters"]["busy_seconds"], composite.busy_seconds,
            "{object}"
        );
        assert_eq!(claim(&object), composite.claim_token.to_string(), "{object}");
    }
}

fn claim(object: &Value) -> &str {
    object["metadata"]["annotations"][composite::ANNOTATION_CLAIM_TOKEN].as_str().unwrap()
}

/// The same resource under a newer claim, with other content.
fn newer(composite: &Composite) -> Composite {
    Composite {
        claim_token: composite.claim_token + 1,
        busy_seconds: composite.busy_seconds + 1,
        ..composite.clone()
    }
}

#[tokio::test]
async fn a_late_create_before_the_newer_one_is_overwritten() {
    let Some(late) = Late::new("a_late_create_before_the_newer_one_is_overwritten").await else {
        return;
    };
    let older = late.bench.composite(loose());
    late.apply_late(&older).await;
    let newer = newer(&older);
    // The newer claim has the server's word that nothing is there.
    assert!(is_absent(&report(&late.newer, &newer.address()).await));
    assert_eq!(late.land().await, 201);
    late.newer_applies(&newer).await;
    late.assert_is(&newer).await;
}

#[tokio::test]
async fn a_late_create_does_not_touch_what_a_newer_claim_made() {
    let Some(late) = Late::new("a_late_create_does_not_touch_what_a_newer_claim_made").await else {
        return;
    };
    let older = late.bench.composite(loose());
    late.apply_late(&older).await;
    let newer = newer(&older);
    late.newer_applies(&newer).await;
    assert_eq!(late.land().await, 409);
    late.assert_is(&newer).await;
    // Also if the older replica goes on.
    let refused = late.bench.engine.apply(&older.rendered()).await.unwrap_err();
    assert!(matches!(refused, Error::Superseded { .. }), "{refused:?}");
    late.assert_is(&newer).await;
}

#[tokio::test]
async fn a_late_create_after_a_deletion_shows_its_older_claim() {
    let Some(late) = Late::new("a_late_create_after_a_deletion_shows_its_older_claim").await else {
        return;
    };
    let older = late.bench.composite(loose());
    late.apply_late(&older).await;
    let newer = newer(&older);
    late.newer_applies(&newer).await;
    late.newer_deletes(&newer).await;
    assert_eq!(late.land().await, 201);
    // The second proof of absence and the scan find it, and by what made it.
    late.until_newer(&newer, "it is observed", |report| report.live().is_some()).await;
    assert_eq!(claim(&late.bench.object(&older).await), older.claim_token.to_string());
    late.newer_deletes(&newer).await;
}

#[tokio::test]
async fn a_late_update_after_a_newer_write_fails() {
    let Some(late) = Late::new("a_late_update_after_a_newer_write_fails").await else { return };
    let first = late.bench.composite(loose());
    late.bench.apply(&first).await;
    let older = newer(&first);
    late.apply_late(&older).await;
    let newer = newer(&older);
    late.newer_applies(&newer).await;
    assert_eq!(late.land().await, 409);
    late.assert_is(&newer).await;
}

#[tokio::test]
async fn a_late_update_where_nothing_was_written_is_drift_and_overwritten() {
    const NAME: &str = "a_late_update_where_nothing_was_written_is_drift_and_overwritten";
    let Some(late) = Late::new(NAME).await else { return };
    let first = late.bench.composite(loose());
    late.bench.apply(&first).await;
    let older = newer(&first);
    late.apply_late(&older).await;
    // The newer claim wants what is there.
    let newer = Composite { claim_token: older.claim_token + 1, ..first.clone() };
    late.newer_applies(&newer).await;
    assert_eq!(late.land().await, 200);
    let drifted = |report: &CompositeReport| {
        report.live().is_some_and(|live| live.owned_hash != newer.rendered().owned_hash())
    };
    late.until_newer(&newer, "the drift is seen", drifted).await;
    late.newer_applies(&newer).await;
    late.assert_is(&newer).await;
}

#[tokio::test]
async fn a_late_update_brings_nothing_back() {
    let Some(late) = Late::new("a_late_update_brings_nothing_back").await else { return };
    for ending in ["terminating", "gone", "made anew"] {
        let first = late.bench.composite(loose());
        late.bench.apply(&first).await;
        if ending == "terminating" {
            let theirs = json!({ "metadata": { "finalizers": ["a.example.org/b"] } });
            late.bench.write(&first, theirs).await;
        }
        let older = newer(&first);
        late.apply_late(&older).await;
        let newer = newer(&older);
        if ending == "terminating" {
            let uid = late.bench.object(&first).await["metadata"]["uid"].clone();
            late.newer.delete(&newer.address(), uid.as_str().unwrap()).await.unwrap();
        } else {
            late.newer_deletes(&newer).await;
        }
        if ending == "made anew" {
            late.newer_applies(&newer).await;
        }
        assert_eq!(late.land().await, 409, "{ending}");
        match ending {
            "terminating" => {
                let object = late.bench.object(&first).await;
                assert_eq!(claim(&object), first.claim_token.to_string());
                late.bench.write(&first, json!({ "metadata": { "finalizers": null } })).await;
            }
            "gone" => assert!(!late.bench.object_exists(&first).await, "it was made again"),
            _ => late.assert_is(&newer).await,
        }
    }
}

#[tokio::test]
async fn a_late_delete_hits_its_object_and_no_other() {
    let Some(late) = Late::new("a_late_delete_hits_its_object_and_no_other").await else { return };
    for made_anew in [false, true] {
        let older = late.bench.composite(loose());
        let uid = late.bench.apply(&older).await.uid;
        late.hold("DELETE", &older.name());
        late.bench.engine.delete(&older.address(), &uid).await.unwrap_err();
        let newer = newer(&older);
        if made_anew {
            late.newer_deletes(&newer).await;
        }
        late.newer_applies(&newer).await;
        assert_eq!(late.land().await, if made_anew { 409 } else { 200 });
        let terminating =
            late.bench.object(&newer).await["metadata"]["deletionTimestamp"].is_string();
        assert_eq!(terminating, !made_anew);
    }
}

#[tokio::test]
async fn a_late_removal_of_the_finalizer_hits_its_object_and_no_other() {
    const NAME: &str = "a_late_removal_of_the_finalizer_hits_its_object_and_no_other";
    let Some(late) = Late::new(NAME).await else { return };
    for meanwhile in ["nothing", "written", "released", "made anew"] {
        let older = late.bench.composite(loose());
        let uid = late.bench.apply(&older).await.uid;
        late.hold("PATCH", &older.name());
        late.bench.engine.delete(&older.address(), &uid).await.unwrap_err();
        let newer = newer(&older);
        match meanwhile {
            "written" => {
                let theirs = json!({ "metadata": { "labels": { "team": "red" } } });
                late.bench.write(&older, theirs).await;
            }
            "released" => late.newer_deletes(&newer).await,
            "made anew" => {
                late.newer_deletes(&newer).await;
                late.newer_applies(&newer).await;
            }
            _ => {}
        }
        let answer = late.land().await;
        match meanwhile {
            "nothing" => {
                assert_eq!(answer, 200);
                assert!(!late.bench.object_exists(&older).await);
            }
            "released" => assert_eq!(answer, 404),
            _ => {
                assert_eq!(answer, 409, "{meanwhile}");
                let finalizers = &late.bench.object(&older).await["metadata"]["finalizers"];
                assert_eq!(*finalizers, json!([composite::FINALIZER_DRAIN]));
            }
        }
    }
}

/// The high-water mark only grows, also by requests that land late.
#[tokio::test]
async fn a_late_mark_does_not_fall_behind_a_newer_one() {
    let Some(late) = Late::new("a_late_mark_does_not_fall_behind_a_newer_one").await else {
        return;
    };
    let engine = || {
        crate::support::mk_engine(
            &late.bench.kubeconfig,
            late.bench.installation,
            crate::support::NO_SWEEP,
        )
        .with_system_namespace(&late.bench.namespace)
    };
    for (first, second) in [(1, 2), (3, 4)] {
        let (older, newer) = (engine(), engine());
        for engine in [&older, &newer] {
            engine.high_water_mark_read(true).await.unwrap();
        }
        // A create in the first round, an update in the second.
        late.hold("PATCH", "slipway-high-water-mark");
        older.high_water_mark_write(first).await.unwrap_err();
        newer.high_water_mark_write(second).await.unwrap();
        assert_eq!(late.land().await, 409);
        assert_eq!(engine().high_water_mark_read(true).await.unwrap().value, Some(second));
    }
}
