//! The inventory of a root, and the owners in it.

use std::fs;
use std::path::Path;

use slipway_app::ports::substrate::{Error, InventoryPage, InventoryRequest, Substrate};
use slipway_core::ids::ClaimToken;
use slipway_substrate::local::LocalSubstrate;

use crate::support::{Bench, NAMESPACE, address, mk_composite};

fn request(after: Option<String>, limit: usize) -> InventoryRequest {
    InventoryRequest { substrate_uid: None, after, limit }
}

async fn inventory(engine: &LocalSubstrate) -> InventoryPage {
    engine.inventory(&request(None, 100)).await.unwrap()
}

/// Copies a node directory beside it, with a text replaced in the copy.
fn copy(from: &Path, name: &str, replace: (&str, &str)) {
    let to = from.with_file_name(name);
    fs::create_dir(&to).unwrap();
    let object = fs::read_to_string(from.join("composite.json")).unwrap();
    assert!(object.contains(replace.0), "{object}");
    fs::write(to.join("composite.json"), object.replace(replace.0, replace.1)).unwrap();
}

#[tokio::test]
async fn an_object_is_found_with_what_it_says_of_itself() {
    let bench = Bench::new();
    assert_eq!(inventory(&bench.engine).await, InventoryPage::default(), "nothing is there yet");
    let live = bench.apply_until_ready().await;
    let page = inventory(&bench.engine).await;
    let [found] = &page.found[..] else { panic!("{page:?}") };
    assert_eq!(
        (&*found.object_ref.namespace, &found.object_ref.name),
        (NAMESPACE, &address().name)
    );
    assert_eq!(found.provisioned_resource_id, Some(address().provisioned_resource_id));
    assert_eq!(found.uid, live.uid);
    assert_eq!(found.claim_token, Some(ClaimToken(3)));
    assert_eq!(found.evidence["pid"], live.evidence["pid"]);
    assert_eq!((page.foreign, page.unreadable.len(), page.next), (0, 0, None));
    let told = format!("{found:?}");
    assert!(!told.contains("psb_test"), "no secret is told: {told}");
}

#[tokio::test]
async fn others_are_counted_and_what_is_half_done_is_not_there() {
    let bench = Bench::new();
    bench.apply_until_ready().await;
    let directory = bench.directory();
    let ours = "00000000-0000-0000-0000-000000000001";
    copy(&directory, "theirs", (ours, "00000000-0000-0000-0000-000000000002"));
    copy(&directory, ".new-1", (ours, ours));
    let elsewhere = bench.root().join("another-namespace");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("file"), "").unwrap();
    let page = inventory(&bench.engine).await;
    assert_eq!((page.found.len(), page.foreign, page.unreadable.len()), (1, 1, 0), "{page:?}");
    let page = inventory(&bench.engine_of(2)).await;
    assert_eq!((page.found.len(), page.foreign), (1, 1), "the other way round");
}

#[tokio::test]
async fn an_object_without_an_attempt_is_found_all_the_same() {
    let bench = Bench::new();
    bench.apply_until_ready().await;
    let id = address().provisioned_resource_id.to_string();
    copy(&bench.directory(), "nobody", (&id, "nonsense"));
    let page = inventory(&bench.engine).await;
    let owners: Vec<_> =
        page.found.iter().map(|found| found.provisioned_resource_id.is_some()).collect();
    assert_eq!(owners, [false, true], "in the order of their names: {page:?}");
}

#[tokio::test]
async fn pages_give_each_object_once() {
    let bench = Bench::new();
    bench.apply_until_ready().await;
    for number in 0..5 {
        copy(&bench.directory(), &format!("copy-{number}"), ("uid", "uid"));
    }
    let expected: Vec<_> =
        inventory(&bench.engine).await.found.into_iter().map(|f| f.object_ref).collect();
    assert_eq!(expected.len(), 6);
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let page = bench.engine.inventory(&request(after, 2)).await.unwrap();
        assert!(page.found.len() <= 2);
        paged.extend(page.found.into_iter().map(|found| found.object_ref));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(paged, expected);
    let wrong = bench.engine.inventory(&request(Some("nonsense".to_owned()), 2)).await;
    assert!(matches!(wrong, Err(Error::Failed(_))), "{wrong:?}");
}

/// Invariant 3: "could not read" is not "gone".
#[tokio::test]
async fn an_inventory_that_cannot_be_read_is_an_error_and_never_empty() {
    let bench = Bench::new();
    bench.apply_until_ready().await;
    let broken = bench.directory().with_file_name("broken");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("composite.json"), "{").unwrap();
    let page = inventory(&bench.engine).await;
    assert_eq!(page.found.len(), 1, "one bad directory hides no other");
    let [(object_ref, reason)] = &page.unreadable[..] else { panic!("{page:?}") };
    assert_eq!((object_ref.name.as_str(), reason.contains("not JSON")), ("broken", true));

    let other = InventoryRequest {
        substrate_uid: Some("recorded long ago".to_owned()),
        ..request(None, 10)
    };
    let refused = bench.engine.inventory(&other).await;
    assert!(matches!(refused, Err(Error::Failed(_))), "{refused:?}");
    let moved = bench.root().with_extension("unmounted");
    fs::rename(bench.root(), &moved).unwrap();
    let refused = bench.engine.inventory(&request(None, 10)).await;
    assert!(matches!(refused, Err(Error::Failed(_))), "{refused:?}");
    fs::rename(moved, bench.root()).unwrap();
}

#[tokio::test]
async fn a_copy_elsewhere_is_deleted_by_its_own_place() {
    let bench = Bench::new();
    let live = bench.apply_until_ready().await;
    copy(&bench.directory(), "copy", ("uid", "uid"));
    let there = slipway_app::ports::substrate::Address { name: "copy".to_owned(), ..address() };
    bench.engine.delete(&there, &live.uid).await.unwrap();
    let page = inventory(&bench.engine).await;
    assert_eq!(page.found.len(), 1, "{page:?}");
    assert_eq!(page.found[0].object_ref.name, address().name);
    bench.engine.apply(&mk_composite().rendered()).await.unwrap();
    assert_eq!(bench.live().await.evidence["pid"], live.evidence["pid"], "it was left alone");
}
