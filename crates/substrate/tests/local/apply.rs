//! From a rendered composite to a running agent, and only one.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::{Signal, kill_process};
use slipway_app::ports::substrate::{Error, Substrate};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::ids::{BootstrapTokenId, ClaimToken, InstallationId};
use slipway_core::nodes::token::Carried;
use slipway_core::secret::Secret;
use slipway_render::composite::{carried, injected};
use slipway_render::local_node::Injection;
use slipway_substrate::local::{LocalConfig, LocalSubstrate};
use uuid::Uuid;

use crate::support::{Bench, address, mk_composite, pid};

#[tokio::test]
async fn an_applied_composite_becomes_a_ready_node() {
    let bench = Bench::new();
    assert!(matches!(bench.report().await, CompositeReport::Absent));
    let live = bench.apply_until_ready().await;

    let rendered = mk_composite().rendered();
    assert_eq!(live.owned_hash, rendered.owned_hash());
    assert_eq!(live.carried, carried(rendered.expose_object()));
    assert_ne!(live.carried, Carried::Nothing);
    assert_eq!(
        live.injected.unwrap().expose(),
        injected(rendered.expose_object()).unwrap().expose()
    );
    assert!(!live.terminating && live.failure.is_none());
    for name in ["composite.json", "user-data", "agent.log"] {
        let mode = fs::metadata(bench.directory().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let stored = fs::read_to_string(bench.directory().join("composite.json")).unwrap();
    assert!(!stored.contains("psb_test"), "the token lies in user-data alone: {stored}");
}

#[tokio::test]
async fn many_applies_of_many_replicas_leave_one_agent() {
    let bench = Bench::new();
    let replicas = [bench.engine.clone(), bench.another_engine(), bench.another_engine()];
    let applies = (0..30).map(|round| {
        let engine = replicas[round % replicas.len()].clone();
        tokio::spawn(async move { engine.apply(&mk_composite().rendered()).await })
    });
    for apply in applies.collect::<Vec<_>>() {
        apply.await.unwrap().unwrap();
    }
    let live = bench.until_ready().await;
    for engine in &replicas {
        engine.apply(&mk_composite().rendered()).await.unwrap();
    }
    let again = bench.live().await;
    assert_eq!((&again.uid, pid(&again)), (&live.uid, pid(&live)));
    assert_eq!(bench.lived(), 1);
}

#[tokio::test]
async fn a_killed_agent_is_not_ready_and_started_again() {
    let bench = Bench::new();
    let first = bench.apply_until_ready().await;
    kill_process(pid(&first), Signal::KILL).unwrap();
    bench.until("the lock is free", |report| report.live().is_some_and(|live| !live.ready)).await;

    // Within its first second an agent counts as starting, so an apply may
    // have to be repeated, as the loop does.
    let second = bench.apply_again_until_ready().await;
    assert_eq!(second.uid, first.uid);
    assert_ne!(pid(&second), pid(&first));
    assert_eq!(bench.lived(), 2);
}

#[tokio::test]
async fn a_new_engine_finds_the_running_agent() {
    let mut bench = Bench::new();
    let before = bench.apply_until_ready().await;
    bench.engine = bench.another_engine();
    let found = bench.live().await;
    assert!(found.ready);
    assert_eq!((&found.uid, pid(&found)), (&before.uid, pid(&before)));
    bench.engine.apply(&mk_composite().rendered()).await.unwrap();
    assert_eq!(pid(&bench.live().await), pid(&before));
    assert_eq!(bench.lived(), 1);
}

#[tokio::test]
async fn the_document_is_taken_over_to_the_letter_and_kept_if_not_given() {
    let bench = Bench::new();
    let first = bench.apply_until_ready().await;
    let document = "#cloud-config\n# kept:  with its spaces \nwrite_files: []\n";
    let mut composite = mk_composite();
    composite.injection = Injection::Verbatim {
        id: Some(BootstrapTokenId::new(Uuid::from_u128(21))),
        document: Secret::new(document),
    };
    bench.engine.apply(&composite.rendered()).await.unwrap();
    assert_eq!(fs::read_to_string(bench.directory().join("user-data")).unwrap(), document);

    composite.injection = Injection::None;
    bench.engine.apply(&composite.rendered()).await.unwrap();
    let live = bench.live().await;
    assert_eq!(live.injected.unwrap().expose(), document);
    assert_eq!(live.uid, first.uid);
}

#[tokio::test]
async fn an_object_of_another_installation_is_left_alone() {
    let bench = Bench::new();
    let stranger = bench.engine_of(2);
    let mut composite = mk_composite();
    composite.installation = 2;
    stranger.apply(&composite.rendered()).await.unwrap();
    let before = fs::read(bench.directory().join("composite.json")).unwrap();

    let CompositeReport::Foreign { reason } = bench.report().await else { panic!("not ours") };
    assert!(reason.contains("belongs to the installation"), "{reason}");
    let refused = bench.engine.apply(&mk_composite().rendered()).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    let uid = stranger.observe(&[address()]).await[0].live().unwrap().uid.clone();
    let refused = bench.engine.delete(&address(), &uid).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    assert_eq!(fs::read(bench.directory().join("composite.json")).unwrap(), before);
}

#[tokio::test]
async fn a_worker_that_lost_its_claim_cannot_write() {
    let bench = Bench::new();
    bench.apply_until_ready().await;
    let mut newer = mk_composite();
    newer.claim_token = 7;
    bench.engine.apply(&newer.rendered()).await.unwrap();
    let refused = bench.engine.apply(&mk_composite().rendered()).await;
    assert_eq!(
        refused.map(|_| ()),
        Err(Error::Superseded { ours: ClaimToken(3), found: ClaimToken(7) }),
        "nothing but the claim differs, and it must have been recorded"
    );
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    let bench = Bench::new();
    let engine = LocalSubstrate::open(LocalConfig {
        root: bench.root(),
        agent_program: bench.root().join("no-such-program"),
        agent_arguments: Vec::new(),
        stop_grace: LocalConfig::DEFAULT_STOP_GRACE,
        installation: InstallationId::new(Uuid::from_u128(1)),
    })
    .unwrap();
    let Err(Error::Failed(message)) = engine.apply(&mk_composite().rendered()).await else {
        panic!("a missing program was started")
    };
    assert!(message.contains("start the agent of"), "{message}");
    assert!(!message.contains("psb_test"), "{message}");
}
