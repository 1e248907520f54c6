//! A server comes, changes and goes.

use serde_json::json;
use slipway_app::ports::substrate::{Error, InventoryRequest, Substrate};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::fixtures::topology::mk_owner;
use slipway_core::ids::{ClaimToken, GroupId};
use slipway_core::nodes::token::Carried;
use slipway_core::topology::role::NodeRole;
use slipway_render::Injection;
use slipway_render::composite::carried;

use slipway_standin::hetzner::Fault;

use super::support::{Bench, Composite, token};

#[tokio::test]
async fn a_server_is_made_protected_and_goes_with_proof() {
    let bench = Bench::new().await;
    assert!(matches!(bench.report().await, CompositeReport::Absent));
    let composite = bench.composite().with("delete_protection", json!(true));
    let live = bench.up(&composite).await;
    let server = bench.server();
    assert_eq!(live.uid, server.id.to_string());
    assert_eq!(live.carried, carried(composite.rendered().expose_object()), "by its labels");
    assert!(server.is_protected && server.user_data.starts_with("#cloud-config\n"));
    assert!(!format!("{:?}", server.labels).contains("psb_test"), "only a hash of the token");

    let before = bench.provider.requests().len();
    bench.apply(&composite).await.unwrap();
    let more = bench.provider.requests().len() - before;
    assert!(more <= 1, "nothing differs, so nothing is sent");

    bench.down(&live.uid).await;
    assert!(bench.servers().is_empty());
    bench.assert_fits();
}

/// A parameter that a write can change, and one that lasts.
#[tokio::test]
async fn protection_follows_its_parameter_and_a_type_does_not() {
    let bench = Bench::new().await;
    let composite = bench.composite();
    bench.up(&composite).await;
    assert!(!bench.server().is_protected);
    let protected = composite.clone().with("delete_protection", json!(true));
    bench.up(&protected).await;
    assert!(bench.server().is_protected);
    bench.provider.change_server("main", bench.server().id, |server| server.is_protected = false);
    // What somebody changed by hand is taken back.
    bench
        .until("protected again", async || {
            bench.up(&protected).await;
            bench.server().is_protected.then_some(()).ok_or_else(|| "not yet".to_owned())
        })
        .await;
    let larger = composite.with("server_type", json!("cx52"));
    let refused = bench.apply(&larger).await.unwrap_err();
    assert!(refused.to_string().contains("for life"), "{refused}");
    assert_eq!(bench.server().server_type, "cx22");
    bench.assert_fits();
}

#[tokio::test]
async fn labels_of_others_stay_and_ours_come_back() {
    let bench = Bench::new().await;
    let composite = bench.composite();
    bench.up(&composite).await;
    let before = bench.server().labels;
    bench.provider.change_server("main", bench.server().id, |server| {
        server.labels.insert("env".to_owned(), "prod".to_owned());
        server.labels.remove("slipway.dev/project");
    });
    bench
        .until("drifted", async || match bench.report().await {
            CompositeReport::Present(live)
                if live.owned_hash != composite.rendered().owned_hash() =>
            {
                Ok(())
            }
            other => Err(format!("{other:?}")),
        })
        .await;
    bench.up(&composite).await;
    let mut after = bench.server().labels;
    assert_eq!(after.remove("env").as_deref(), Some("prod"));
    assert_eq!(after, before);
    bench.assert_fits();
}

/// User data is read once, so another token takes another server.
#[tokio::test]
async fn a_token_that_is_not_in_place_takes_another_server() {
    let bench = Bench::new().await;
    let first = bench.up(&bench.composite()).await;
    let mut next = bench.composite();
    next.claim_token = 4;
    next.injection = token(21);
    let report = bench.apply(&next).await.unwrap();
    assert!(report.live().is_some_and(|live| live.terminating && live.uid == first.uid));
    bench
        .until("gone", async || match bench.report().await {
            CompositeReport::Absent => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    let second = bench.up(&next).await;
    assert_ne!(second.uid, first.uid);
    // An apply without a token, as one that slides it, keeps what is there.
    next.injection = Injection::None;
    let kept = bench.up(&next).await;
    assert_eq!((kept.uid, kept.carried), (second.uid, second.carried));
    assert_ne!(kept.carried, Carried::Nothing);
    bench.assert_fits();
}

#[tokio::test]
async fn an_older_claim_stops_before_a_newer_one() {
    let bench = Bench::new().await;
    let mut composite = bench.composite();
    composite.claim_token = 5;
    bench.up(&composite).await;
    composite.claim_token = 4;
    let older = composite.with("delete_protection", json!(true));
    let refused = bench.apply(&older).await.unwrap_err();
    let expected = Error::Superseded { ours: ClaimToken(4), found: ClaimToken(5) };
    assert_eq!(refused, expected);
    assert!(!bench.server().is_protected);
}

#[tokio::test]
async fn everything_is_listed_for_the_search_for_leaks() {
    let bench = Bench::new().await;
    let mut composite = bench.composite();
    for id in 10..15 {
        composite.id = id;
        bench.up(&composite).await;
    }
    bench.provider.change_server("main", bench.servers()[0].id, |server| server.labels.clear());
    let mut request =
        InventoryRequest { substrate_uid: Some(bench.uid.clone()), after: None, limit: 2 };
    let (mut found, mut foreign, mut pages) = (Vec::new(), 0, 0);
    loop {
        let page = bench.engine.inventory(&request).await.unwrap();
        assert!(page.found.len() <= request.limit);
        found.extend(page.found);
        (foreign, pages) = (foreign + page.foreign, pages + 1);
        request.after = page.next;
        if request.after.is_none() {
            break;
        }
    }
    assert_eq!((found.len(), foreign, pages), (4, 1, 3));
    assert_eq!(found[0].claim_token, Some(ClaimToken(3)));
    assert_eq!(found[0].object_ref.namespace, super::support::NAMESPACE);
    // A page of a list that changed meanwhile might leave one out.
    request.after = Some("2/99".to_owned());
    bench.engine.inventory(&request).await.unwrap_err();
    request.substrate_uid = Some("another".to_owned());
    request.after = None;
    bench.engine.inventory(&request).await.unwrap_err();
    bench.assert_fits();
}

/// Only what carries its label is in the list of a group, and the provider selects it.
#[tokio::test]
async fn the_servers_of_a_group_are_listed_by_their_label() {
    let bench = Bench::new().await;
    let owner = mk_owner(NodeRole::Worker);
    let group = owner.group_id;
    for (id, owner) in [(10, Some(owner.clone())), (11, None), (12, Some(owner))] {
        bench.up(&Composite { id, owner, ..bench.composite() }).await;
    }
    let request =
        InventoryRequest { substrate_uid: Some(bench.uid.clone()), after: None, limit: 50 };
    let page = bench.engine.group_inventory(group, &request).await.unwrap();
    assert_eq!((page.found.len(), page.foreign, page.next), (2, 0, None));
    assert!(page.found.iter().all(|found| found.group == Some(group)));
    let asked = bench.provider.requests();
    let selected = |line: &&String| line.contains("label_selector") && line.contains("%2Fgroup");
    assert_eq!(asked.iter().filter(selected).count(), 1, "{asked:?}");
    let another = GroupId::new(uuid::Uuid::from_u128(7));
    assert!(bench.engine.group_inventory(another, &request).await.unwrap().found.is_empty());
    bench.provider.order("GET", "/servers", 1, Fault::Answer(503, "unavailable".to_owned()));
    bench.engine.group_inventory(group, &request).await.unwrap_err();
    bench.assert_fits();
}

#[tokio::test]
async fn the_mark_only_grows_and_gates_every_action() {
    let bench = Bench::new().await;
    let engine = &bench.engine;
    assert_eq!(engine.high_water_mark_read(true).await.unwrap().value, None);
    engine.high_water_mark_write(7).await.unwrap();
    engine.high_water_mark_write(5).await.unwrap();
    let read = engine.high_water_mark_read(true).await.unwrap();
    assert_eq!((read.value, read.fresh), (Some(7), true));
    let other = bench.engine_of(super::support::OURS);
    let refused = other.apply(&bench.composite().rendered()).await.unwrap_err();
    assert!(refused.to_string().contains("high-water mark"), "{refused}");
    bench.compare(&other).await;
    other.apply(&bench.composite().rendered()).await.unwrap();
    let marker = &bench.provider.placement_groups("main")["slipway-identity"];
    assert_eq!(marker["slipway.dev/heartbeat"], "7");
    assert_eq!(marker["slipway.dev/project-uid"], bench.uid);
    bench.assert_fits();
}
