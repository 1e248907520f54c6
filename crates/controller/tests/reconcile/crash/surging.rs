//! Scenarios with two attempts of one resource at once.

use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::{ProvisionedResourceId, ResourceId};

use super::plane::Plane;
use super::raw::Raw;
use super::scenarios::{CAME, CAME_AND_WENT, Filling, NEVER_CAME, filling, ready};

/// Asks for a surge, and waits until the new attempt waits for its node.
async fn beside(plane: &mut Plane<'_>, resource: ResourceId) -> ProvisionedResourceId {
    plane.surge(resource).await;
    let waits = |seen: &ResourceSnapshot| {
        seen.beside().is_some_and(|one| one.attempt.phase() == Phase::Enrolling)
    };
    let seen = plane.until(resource, "the attempt beside to wait for its node", waits).await;
    assert_eq!((seen.attempt.attempt(), seen.attempt.phase()), (1, Phase::Ready), "in use");
    seen.beside().unwrap().attempt.id()
}

/// Whatever struck, the new attempt is in use at the end, and the old one went only after it
/// was Ready.
pub(super) async fn surged(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    plane.prove_when_told();
    let resource = ready(plane, handle).await;
    let first = plane.world.get(resource).await.attempt.id();
    plane.arm();
    let second = beside(plane, resource).await;
    let name = plane.world.get_attempt(second).await.attempt.xr_name().to_owned();
    let token = plane.world.token(&name);
    plane.enrol_with(resource, 2, &token).await;
    let taken_over = |seen: &ResourceSnapshot| seen.attempt.id() == second;
    let seen = plane.until(resource, "the new attempt to be in use", taken_over).await;
    assert_eq!(seen.attempt.phase(), Phase::Ready);
    assert_eq!(seen.attempt.parameter_values().as_map()["busy_seconds"], 1);
    plane.acknowledge_of(first).await;
    let gone = |seen: &ResourceSnapshot| seen.attempt.phase() == Phase::Deleted;
    plane.until_attempt(first, "the old attempt to be gone", gone).await;
    plane.disarm();
    Raw::open(&plane.world.url).await.age(first).await;
    plane.until_proven(first).await;
    vec![
        Filling { events: CAME_AND_WENT, ..filling(resource, first, "resource.replace") },
        Filling {
            phase: Phase::Ready,
            events: CAME,
            followed: false,
            beside: true,
            ..filling(resource, second, "resource.delete")
        },
    ]
}

/// Whatever struck, the attempt in use is as it was, and nothing of the other one is left.
pub(super) async fn aborted(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    plane.prove_when_told();
    let resource = ready(plane, handle).await;
    let first = plane.world.get(resource).await.attempt.id();
    let second = beside(plane, resource).await;
    plane.arm();
    plane.abort(resource).await;
    let gone = |seen: &ResourceSnapshot| seen.attempt.phase() == Phase::Deleted;
    plane.until_attempt(second, "the second attempt to be gone", gone).await;
    plane.disarm();
    Raw::open(&plane.world.url).await.age(second).await;
    plane.until_proven(second).await;
    vec![
        Filling {
            phase: Phase::Ready,
            events: CAME,
            followed: false,
            ..filling(resource, first, "resource.delete")
        },
        Filling {
            events: NEVER_CAME,
            beside: true,
            ..filling(resource, second, "resource.replace")
        },
    ]
}
