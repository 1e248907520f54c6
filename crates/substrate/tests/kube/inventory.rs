//! The inventory of a cluster.

use slipway_app::ports::substrate::{InventoryPage, InventoryRequest, Substrate};
use slipway_core::ids::ClaimToken;

use crate::support::{Bench, global, loose, typed};

async fn page(bench: &Bench, after: Option<String>) -> InventoryPage {
    let request = InventoryRequest { substrate_uid: None, after, limit: 2 };
    bench.engine.inventory(&request).await.unwrap()
}

#[tokio::test]
async fn pages_go_over_all_kinds_and_count_what_is_not_ours() {
    const NAME: &str = "pages_go_over_all_kinds_and_count_what_is_not_ours";
    let Some(bench) = Bench::new(NAME).await else { return };
    let Some(other) = Bench::new(NAME).await else { return };
    let mut expected = Vec::new();
    for kind in [loose(), typed(), global()] {
        for _ in 0..3 {
            let composite = bench.composite(kind.clone());
            let uid = bench.apply(&composite).await.uid;
            expected.push((uid, composite.id));
        }
        other.apply(&other.composite(kind)).await;
    }
    let (mut found, mut foreign, mut after) = (Vec::new(), 0, None);
    loop {
        let page = page(&bench, after).await;
        assert!(page.found.len() <= 2, "{page:?}");
        assert!(page.unreadable.is_empty(), "{page:?}");
        foreign += page.foreign;
        found.extend(page.found);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    // Other tests have objects there as well.
    assert!(foreign >= 3, "{foreign}");
    let mut seen: Vec<_> = found
        .iter()
        .map(|found| (found.uid.clone(), found.provisioned_resource_id.unwrap()))
        .collect();
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
    assert!(found.iter().all(|found| found.claim_token == Some(ClaimToken(3))));
    assert!(!format!("{found:?}").contains("bbbbbbbb"), "no token is shown");
}

#[tokio::test]
async fn what_is_no_page_is_an_error() {
    let Some(bench) = Bench::new("what_is_no_page_is_an_error").await else { return };
    let request = InventoryRequest { substrate_uid: None, after: None, limit: 10 };
    let refused = bench.engine.inventory(&request).await.unwrap_err().to_string();
    assert!(refused.contains("no kind of composite is known yet"), "{refused}");
    bench.engine.expect_kinds(&[loose()]);
    bench.engine.inventory(&request).await.unwrap();
    let mut request = InventoryRequest { substrate_uid: None, after: None, limit: 10 };
    request.after = Some("nonsense".to_owned());
    let refused = bench.engine.inventory(&request).await.unwrap_err().to_string();
    assert!(refused.contains("no cursor"), "{refused}");
    request.after = None;
    request.substrate_uid = Some("another".to_owned());
    let refused = bench.engine.inventory(&request).await.unwrap_err().to_string();
    assert!(refused.contains("another cluster"), "{refused}");
}
