//! Pairs at the same moment, each with the outcomes that are allowed.

use std::collections::BTreeSet;

use slipway_core::ErrorKind;

use super::client::{Client, admin, refused};
use crate::fleet::{links, objects, stacks};
use crate::ports::store::Page;
use crate::testing::races::at_once;

/// Whoever comes first: the newest object of a deleted stack is its marker.
pub(super) async fn submit_with_delete(client: &Client) {
    let generator = client.generator().await;
    let (stack, _) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    client.poll(agent).await;
    let (a, b) = (client.clone(), client.clone());
    let (submitted, deleted) = at_once(async move { a.submit(stack, "late").await }, async move {
        b.delete_stack(stack).await
    })
    .await;
    match submitted {
        Ok(_) => {}
        refusal => assert_eq!(refused(refusal), ErrorKind::StackNotFound),
    }
    // It was written meanwhile: asked again, it goes.
    if deleted.is_err() {
        assert_eq!(refused(deleted), ErrorKind::RevisionStale);
        client.delete_stack(stack).await.expect("a deletion");
    }
    let offered = client.poll(agent).await;
    assert!(offered.len() == 1 && offered[0].is_marker, "{offered:?}");
}

pub(super) async fn submit_with_submit(client: &Client) {
    let stack = client.stack(client.generator().await).await;
    let (a, b) = (client.clone(), client.clone());
    let (one, other) = at_once(async move { a.submit(stack, "one").await }, async move {
        b.submit(stack, "other").await
    })
    .await;
    one.expect("an object");
    other.expect("an object");
    let page = Page { after: None, limit: 10 };
    let listed = objects::list(&client.context, &admin(), stack, page).await.expect("a list");
    assert_eq!(listed.len(), 2);
    assert!(listed[0].sequence < listed[1].sequence);
    let last = stacks::fetch(&client.context, &admin(), stack, false).await.expect("it");
    assert_eq!(last.last_sequence, listed[1].sequence, "the last to commit has the highest");
}

pub(super) async fn delete_with_delete(client: &Client) {
    let generator = client.generator().await;
    let (stack, _) = client.deployed(generator).await;
    let (a, b) = (client.clone(), client.clone());
    let outcome =
        at_once(
            async move { a.delete_stack(stack).await },
            async move { b.delete_stack(stack).await },
        )
        .await;
    match outcome {
        (Ok(_), lost @ Err(_)) | (lost @ Err(_), Ok(_)) => {
            assert_eq!(refused(lost), ErrorKind::StackNotFound);
        }
        both => panic!("exactly one deletes it: {both:?}"),
    }
}

/// No live stack under a deleted generator.
pub(super) async fn create_with_delete_of_its_generator(client: &Client) {
    let generator = client.generator().await;
    client.deployed(generator).await;
    let (a, b) = (client.clone(), client.clone());
    let name = client.name("raced");
    let (created, deleted) =
        at_once(async move { a.stack_called(generator, &name).await }, async move {
            b.delete_generator(generator).await
        })
        .await;
    deleted.expect("it goes");
    match created {
        Ok(stack) => assert!(!client.is_live(stack).await, "it went with its generator"),
        refusal => assert_eq!(refused(refusal), ErrorKind::GeneratorNotFound),
    }
}

pub(super) async fn restore_with_create_of_the_same_name(client: &Client) {
    let generator = client.generator().await;
    let name = client.name("again");
    let old = client.stack_called(generator, &name).await.expect("a stack");
    let deletion = client.delete_stack(old).await.expect("a deletion");
    let (a, b) = (client.clone(), client.clone());
    let (restored, created) = at_once(async move { a.restore(deletion).await }, async move {
        b.stack_called(generator, &name).await
    })
    .await;
    match (restored, created) {
        (Ok(_), lost @ Err(_)) => {
            assert_eq!(refused(lost), ErrorKind::NameTaken);
            assert!(client.is_live(old).await);
        }
        (lost @ Err(_), Ok(new)) => {
            assert_eq!(refused(lost), ErrorKind::RestoreConflict);
            assert!(client.is_live(new).await && !client.is_live(old).await);
        }
        both => panic!("exactly one has the name: {both:?}"),
    }
}

/// What was offered is owed a marker, whatever came first.
pub(super) async fn poll_with_delete(client: &Client) {
    let generator = client.generator().await;
    let (stack, object) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    let (a, b) = (client.clone(), client.clone());
    let (offered, deleted) =
        at_once(async move { a.offered(agent).await }, async move { b.delete_stack(stack).await })
            .await;
    deleted.expect("it goes");
    let later = client.poll(agent).await;
    if offered.contains(&object) {
        assert!(later.len() == 1 && later[0].is_marker, "{later:?}");
    } else {
        assert!(offered.is_empty() && later.is_empty(), "{offered:?} {later:?}");
    }
}

/// Two agents with one key get the same, and one holding is there.
pub(super) async fn poll_with_poll(client: &Client) {
    let generator = client.generator().await;
    let (stack, object) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    let (a, b) = (client.clone(), client.clone());
    let both =
        at_once(async move { a.offered(agent).await }, async move { b.offered(agent).await }).await;
    assert_eq!(both, (vec![object], vec![object]));
    links::untarget(&client.context, &admin(), agent, stack).await.expect("no target");
    let (a, b) = (client.clone(), client.clone());
    let (one, other) =
        at_once(async move { a.offered(agent).await }, async move { b.offered(agent).await }).await;
    assert_eq!(one, other, "one marker, not two");
}

pub(super) async fn poll_with_untarget(client: &Client) {
    let generator = client.generator().await;
    let (stack, object) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    let (a, b) = (client.clone(), client.clone());
    let (offered, untargeted) = at_once(async move { a.offered(agent).await }, async move {
        links::untarget(&b.context, &admin(), agent, stack).await
    })
    .await;
    untargeted.expect("no target");
    let later = client.poll(agent).await;
    let markers = later.iter().filter(|one| one.is_marker).count();
    let had: BTreeSet<_> = offered.into_iter().collect();
    assert_eq!(markers, usize::from(had.contains(&object)), "{had:?} {later:?}");
    assert_eq!(later.len(), markers);
}
