//! The deletion brake.

use std::sync::Arc;
use std::time::Duration;

use slipway_core::ErrorKind;
use slipway_core::access::audit::Actor;
use slipway_core::broker::delete;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::deletion::brake::{self, BrakeSnapshot, Limits};
use slipway_core::deletion::door::{Ask, Braked, Defaults, DoorInput, Doored};
use slipway_core::ids::{ApiKeyId, DeletionId, ResourceId};
use slipway_core::text::Reason;
use uuid::Uuid;

use crate::ports::store::{Error, Page};
use crate::testing::races::at_once;
use crate::testing::world::{World, operator, refused};

/// A caller with a brake that lets three resources pass.
fn caller(world: &World) -> Braked {
    let key = ApiKeyId::new(world.uuid());
    let limits = Limits { resources: 3, window: Duration::from_secs(600) };
    Braked { key, name: world.fresh_name("key"), limits }
}

impl World {
    /// Deletes as this caller does it; `Err` also if only a trip was recorded.
    async fn delete_braked(
        &self,
        resource: ResourceId,
        caller: &Braked,
        ask: &Ask,
    ) -> Result<DeletionId, Error> {
        let actor = Actor::new(format!("key:{}", caller.name));
        let mut refused = None;
        let mut rule = |snapshot: &Doored<ResourceSnapshot>| {
            let requested = delete::request(&snapshot.of, &snapshot.door, ask, &actor)?;
            refused = requested.refused;
            Ok(requested.commit)
        };
        let input = DoorInput { caller: Some(caller.clone()), ..ask.input(Defaults::default()) };
        self.store.broker.decide_deletion(resource, input, &mut rule).await?;
        refused.map_or(Ok(ask.deletion_id), |refusal| Err(refusal.into()))
    }

    /// The types of the events about this, in their order.
    pub(super) async fn events_of(&self, id: Uuid) -> Vec<String> {
        let events = self.relay_all(0).await.into_iter();
        let of = events.filter(|event| event.aggregate_id == id);
        of.map(|event| event.event_type.clone()).collect()
    }

    async fn is_stopped(&self, caller: &Braked) -> bool {
        let page = Page { after: None, limit: 1_000 };
        let on = self.store.deletion.brake_list(page).await.expect("brakes");
        on.iter().any(|brake| brake.api_key_id == caller.key && brake.tripped.is_some())
    }

    async fn release(&self, caller: &Braked) -> Result<(), Error> {
        let reason = Reason::parse("it is meant").expect("a valid reason");
        let mut rule = |snapshot: &BrakeSnapshot| {
            let minute = Duration::from_secs(60);
            Ok(brake::release(snapshot, minute, &reason, &operator())?.1)
        };
        self.store.deletion.brake_decide(caller.key, &mut rule).await
    }

    async fn declare_many(&self, count: usize) -> Vec<ResourceId> {
        let (project, _) = self.furnished().await;
        let mut declared = Vec::new();
        for _ in 0..count {
            declared.push(self.declare_in(&project).await.expect("a declaration").resource);
        }
        declared
    }
}

/// The one that is too many is not recorded, its caller is stopped until the release, and
/// nobody else is.
pub(super) async fn a_caller_that_deletes_too_much_is_stopped(world: &World) {
    let resources = world.declare_many(12).await;
    let (caller, other) = (caller(world), caller(world));
    let cancelled = world.delete_braked(resources[0], &caller, &world.ask_with(HOUR)).await;
    world.cancel(cancelled.expect("a deletion")).await.expect("nothing went");
    for resource in &resources[..3] {
        world.delete_braked(*resource, &caller, &world.ask()).await.expect("it goes");
    }
    let again = world.delete_braked(resources[0], &caller, &world.ask()).await;
    again.expect("what is under way is no new deletion");
    assert!(!world.is_stopped(&caller).await);

    let ask = world.ask();
    let stopped = world.delete_braked(resources[3], &caller, &ask).await;
    assert_eq!(refused(stopped), ErrorKind::DeletionBrake);
    let found = world.store.deletion.deletion_fetch(ask.deletion_id).await.expect("a read");
    assert_eq!(found, None, "nothing is recorded");
    assert!(world.is_stopped(&caller).await);
    world.delete_braked(resources[3], &other, &world.ask()).await.expect("others delete");

    let glass = Ask { break_glass: true, ..world.ask() };
    let id = world.delete_braked(resources[4], &caller, &glass).await.expect("an admin may");
    assert!(world.is_stopped(&caller).await, "that releases nothing");
    let events = world.events_of(id.as_uuid()).await;
    assert!(events.iter().any(|name| name == "deletion.BreakGlass"), "{events:?}");

    world.release(&caller).await.expect("a release");
    assert_eq!(refused(world.release(&caller).await), ErrorKind::NothingToLift);
    for resource in &resources[5..9] {
        world.delete_braked(*resource, &caller, &world.ask()).await.expect("uncounted");
    }
    let events = world.events_of(caller.key.as_uuid()).await;
    assert_eq!(events, ["deletion.BrakeTripped", "deletion.BrakeReleased"]);
}

/// Half of a project is too much, if that is five.
pub(super) async fn a_caller_that_deletes_half_of_a_project_is_stopped(world: &World) {
    let resources = world.declare_many(10).await;
    let caller = Braked { limits: Limits::default(), ..caller(world) };
    for resource in &resources[..4] {
        world.delete_braked(*resource, &caller, &world.ask()).await.expect("it goes");
    }
    let stopped = world.delete_braked(resources[4], &caller, &world.ask()).await;
    assert_eq!(refused(stopped), ErrorKind::DeletionBrake);
}

/// Two requests of one caller count each other.
pub(in crate::testing) async fn two_requests_at_the_limit(world: &Arc<World>) {
    let resources = world.declare_many(12).await;
    let caller = caller(world);
    for resource in &resources[..2] {
        world.delete_braked(*resource, &caller, &world.ask()).await.expect("it goes");
    }
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (one, other) = (caller.clone(), caller.clone());
    let (third, fourth) = (resources[2], resources[3]);
    let (one, other) =
        at_once(async move { a.delete_braked(third, &one, &a.ask()).await }, async move {
            b.delete_braked(fourth, &other, &b.ask()).await
        })
        .await;
    let (passed, stopped): (Vec<_>, Vec<_>) = [one, other].into_iter().partition(Result::is_ok);
    assert_eq!((passed.len(), stopped.len()), (1, 1), "{passed:?} {stopped:?}");
    for error in stopped {
        assert_eq!(refused(error), ErrorKind::DeletionBrake);
    }
    assert!(world.is_stopped(&caller).await);
}

const HOUR: Duration = Duration::from_secs(3_600);
