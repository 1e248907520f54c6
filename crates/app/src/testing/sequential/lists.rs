//! Lists, pages and filters; the installation and the seed.

use slipway_core::Phase;

use crate::broker::port::ResourceFilter;
use crate::deletion::port::DeletionFilter;
use crate::ports::store::Page;
use crate::testing::world::{PROJECT, World};

pub(super) async fn the_database_answers_and_knows_its_installation(world: &World) {
    world.store.operations.ping().await.expect("the database answers");
    let first = world.store.operations.installation().await.expect("an installation");
    assert!(!first.is_nil());
    assert_eq!(world.store.operations.installation().await.expect("an installation"), first);
}

/// A second seed has other ids for the same names; existing rows stay.
pub(super) async fn a_seed_is_written_once(world: &World) {
    let before = world.declare(&world.handle()).await.expect("a declaration");
    world.store.operations.seed(&world.mk_seed()).await.expect("a second seed");
    let after = world.declare(&world.handle()).await.expect("a declaration");
    let (before, after) =
        (world.snapshot(before.attempt).await, world.snapshot(after.attempt).await);
    assert_eq!(before.resource.project_id, after.resource.project_id);
    assert_eq!(before.blueprint, after.blueprint);
    assert_eq!(before.placement, after.placement);
    assert_eq!(before.attempt.cloud_credential_id(), after.attempt.cloud_credential_id());
}

/// Checks that a list read page by page equals the list read at once.
macro_rules! pages_agree {
    ($list:expr, $id:expr) => {{
        let all: Vec<_> = $list(Page { after: None, limit: 10_000 })
            .await
            .expect("a list")
            .iter()
            .map($id)
            .collect();
        assert!(all.len() >= 2, "too few rows to page through");
        assert!(all.is_sorted(), "in the order of their ids");
        let mut paged = Vec::new();
        loop {
            let page = Page { after: paged.last().copied(), limit: 3 };
            let next: Vec<_> = $list(page).await.expect("a page").iter().map($id).collect();
            if next.is_empty() {
                break;
            }
            paged.extend(next);
        }
        assert_eq!(paged, all);
    }};
}

pub(super) async fn pages_give_each_row_once_and_in_order(world: &World) {
    let store = &world.store;
    let filter = ResourceFilter { show_deleted: true, ..ResourceFilter::default() };
    pages_agree!(|page| store.broker.resource_list(&filter, page), |row| row
        .as_ref()
        .expect("the row is valid")
        .resource
        .id);
    pages_agree!(|page| store.nodes.node_list(page), |node| node.id);
    let every = DeletionFilter::default();
    pages_agree!(|page| store.deletion.deletion_list(&every, page), |deletion| deletion.id);
    world.relay_all(0).await;
    pages_agree!(|page| store.events.event_list(page), |event| event.position);
}

pub(super) async fn resources_are_filtered(world: &World) {
    let handle = world.handle();
    let gone = world.declare(&handle).await.expect("a declaration");
    world.delete(gone.resource).await.expect("a deletion");
    world.drive(gone.attempt, Phase::Deleted).await;
    let live = world.declare(&handle).await.expect("a declaration");
    let snapshot = world.snapshot(live.attempt).await;
    let project = snapshot.resource.project_id.to_string();
    let slug = snapshot.blueprint.slug.to_string();

    let by_handle = ResourceFilter { handle: Some(handle), ..ResourceFilter::default() };
    let some = |text: &str| Some(text.to_owned());
    let table = [
        (by_handle.clone(), vec![live.resource]),
        (
            ResourceFilter { show_deleted: true, ..by_handle.clone() },
            vec![gone.resource, live.resource],
        ),
        (ResourceFilter { phase: some("Pending"), ..by_handle.clone() }, vec![live.resource]),
        (ResourceFilter { phase: some("Ready"), ..by_handle.clone() }, vec![]),
        (ResourceFilter { project: some(PROJECT), ..by_handle.clone() }, vec![live.resource]),
        (ResourceFilter { project: Some(project), ..by_handle.clone() }, vec![live.resource]),
        (ResourceFilter { project: some("elsewhere"), ..by_handle.clone() }, vec![]),
        (ResourceFilter { blueprint: Some(slug), ..by_handle.clone() }, vec![live.resource]),
        (ResourceFilter { blueprint: some("another"), ..by_handle }, vec![]),
    ];
    for (filter, expected) in table {
        let page = Page { after: None, limit: 10 };
        let found = world.store.broker.resource_list(&filter, page).await.expect("a list");
        let found: Vec<_> =
            found.iter().map(|row| row.as_ref().expect("a valid row").resource.id).collect();
        assert_eq!(found, expected, "{filter:?}");
    }
}
