//! Races of deletions with a known outcome.

use std::sync::Arc;
use std::time::Duration;

use slipway_core::catalog::project::Project;
use slipway_core::deletion::door::Ask;
use slipway_core::deletion::record::DeletionState;
use slipway_core::subject::Subject;
use slipway_core::{ErrorKind, Phase};

use super::races::at_once;
use super::sequential::{approvals, brakes};
use super::world::{World, refused};

const HOUR: Duration = Duration::from_secs(3_600);

pub(super) async fn races(world: &Arc<World>) {
    cancel_with_the_end_of_grace(world).await;
    protect_with_delete(world).await;
    cascade_with_declare(world).await;
    cascade_with_delete_of_a_member(world).await;
    brakes::two_requests_at_the_limit(world).await;
    approvals::approval_with_delete(world).await;
    one_plan_twice(world).await;
    plan_with_declare(world).await;
}

/// Either everything stays as it was, or the teardown has begun.
async fn cancel_with_the_end_of_grace(world: &Arc<World>) {
    let (declared, _) = world.ready().await;
    let id = world.delete_as(declared.resource, &world.ask_with(HOUR)).await.expect("a deletion");
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (cancelled, begun) =
        at_once(async move { a.cancel(id).await }, async move { b.begin(declared.resource).await })
            .await;
    // The loser finds the record changed, and looks at it again.
    let begun = match begun {
        Err(error) => {
            assert_eq!(refused::<()>(Err(error)), ErrorKind::RevisionStale);
            world.begin(declared.resource).await
        }
        begun => begun,
    };
    begun.expect("a deletion that was cancelled does not begin");
    let (state, phase) =
        (world.deletion(id).await.state, world.snapshot(declared.attempt).await.attempt.phase());
    match cancelled {
        Ok(()) => assert_eq!((state, phase), (DeletionState::Cancelled, Phase::Ready)),
        error => {
            assert_eq!(refused(error), ErrorKind::NotCancellable);
            assert_eq!((state, phase), (DeletionState::Running, Phase::Deregistering));
        }
    }
}

/// A thing is protected, or it is being taken down.
async fn protect_with_delete(world: &Arc<World>) {
    let (declared, _) = world.ready().await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (protected, deleted) =
        at_once(async move { a.protect(Subject::from(declared.resource)).await }, async move {
            b.delete(declared.resource).await
        })
        .await;
    match protected {
        Ok(()) => assert_eq!(refused(deleted), ErrorKind::Protected),
        error => {
            assert_eq!(refused(error), ErrorKind::Leaving);
            deleted.expect("it goes");
        }
    }
}

/// What was declared before goes with its project; afterwards nothing is declared.
async fn cascade_with_declare(world: &Arc<World>) {
    let (project, _) = world.furnished().await;
    world.declare_in(&project).await.expect("a declaration");
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (of_delete, of_declare) = (project.clone(), project);
    let (deleted, declared) = at_once(
        async move { a.remove::<Project>(&of_delete, &Ask { cascade: true, ..a.ask() }).await },
        async move { b.declare_in(&of_declare).await },
    )
    .await;
    let id = deleted.expect("a deletion");
    let resources = world.deletion(id).await.resources;
    match declared {
        Ok(declared) => {
            assert_eq!(resources, 2);
            assert_eq!(world.snapshot(declared.attempt).await.resource.deletion_id, Some(id));
        }
        Err(error) => {
            assert_eq!(refused::<()>(Err(error)), ErrorKind::ProjectLeaving);
            assert_eq!(resources, 1);
        }
    }
}

/// A member has one deletion: its own, if that was first.
async fn cascade_with_delete_of_a_member(world: &Arc<World>) {
    let (project, _) = world.furnished().await;
    let declared = world.declare_in(&project).await.expect("a declaration");
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (cascaded, deleted) = at_once(
        async move { a.remove::<Project>(&project, &Ask { cascade: true, ..a.ask() }).await },
        async move { b.delete(declared.resource).await },
    )
    .await;
    let (cascaded, deleted) = (cascaded.expect("a deletion"), deleted.expect("a deletion"));
    let marked = world.snapshot(declared.attempt).await.resource.deletion_id;
    assert_eq!(marked, Some(deleted));
    let own = deleted != cascaded;
    let running = world.deletion(deleted).await.state == DeletionState::Running;
    assert!(running, "its own {own}: it goes either way");
}

/// Two uses of a plan are one deletion.
async fn one_plan_twice(world: &Arc<World>) {
    let (project, _) = world.furnished().await;
    world.declare_in(&project).await.expect("a declaration");
    let plan = world.plan_project(&project).await;
    let use_it = |world: Arc<World>| {
        let (project, ask) = (project.clone(), world.ask_by(&plan));
        async move { world.remove::<Project>(&project, &ask).await }
    };
    let (one, other) = at_once(use_it(Arc::clone(world)), use_it(Arc::clone(world))).await;
    assert_eq!(one.expect("a deletion"), other.expect("a deletion"));
}

/// A deletion takes what its plan read, or nothing.
async fn plan_with_declare(world: &Arc<World>) {
    let (project, _) = world.furnished().await;
    world.declare_in(&project).await.expect("a declaration");
    let plan = world.plan_project(&project).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (of_delete, of_declare) = (project.clone(), project);
    let (deleted, declared) = at_once(
        async move { a.remove::<Project>(&of_delete, &a.ask_by(&plan)).await },
        async move { b.declare_in(&of_declare).await },
    )
    .await;
    match declared {
        Ok(_) => assert_eq!(refused(deleted), ErrorKind::PlanStale),
        Err(error) => {
            assert_eq!(refused::<()>(Err(error)), ErrorKind::ProjectLeaving);
            assert_eq!(world.deletion(deleted.expect("a deletion")).await.resources, 1);
        }
    }
}
