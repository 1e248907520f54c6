//! Attempt lines, as `explain` reads them: claims, blockers, older ones, counts.

use std::time::Duration;

use slipway_core::Phase;
use slipway_core::ids::{Partition, ProjectId};
use slipway_core::operations::explanation::AttemptLine;

use crate::broker::port::AttemptFilter;
use crate::testing::world::World;

async fn lines(world: &World, filter: AttemptFilter) -> Vec<AttemptLine> {
    world.store.broker.attempt_lines(filter, 100).await.expect("lines")
}

/// The line of an attempt matches its row: who has the claim, what blocks it.
pub(super) async fn a_line_says_what_the_row_says(world: &World) {
    let handle = world.handle();
    let declared = world.declare(&handle).await.expect("a declaration");
    let of = AttemptFilter { resource: Some(declared.resource), ..AttemptFilter::default() };
    let found = lines(world, of).await;
    let [line] = &found[..] else { panic!("one attempt: {found:?}") };
    assert_eq!((line.id, line.resource_id), (declared.attempt, declared.resource));
    assert_eq!((line.handle.as_str(), line.number), (handle.as_str(), 1));
    assert_eq!((line.phase.as_str(), line.holder.is_none()), ("Pending", true));
    assert!(line.due_at.is_some() && line.blockers.is_empty() && line.now >= line.since);

    let claimed = world.claim_now(declared.attempt).await;
    let held = lines(world, of).await.remove(0).holder.expect("it is claimed");
    assert!(held.until > line.now, "{held:?}");
    let holders = world.store.broker.partition_holders(world.partition).await.expect("holders");
    assert!(holders.iter().any(|(worker, count)| *worker == held.worker && *count > 0));
    let nowhere = Partition::new(world.uuid());
    assert!(world.store.broker.partition_holders(nowhere).await.expect("holders").is_empty());

    let blocked = AttemptFilter { blocked: true, ..of };
    assert!(lines(world, blocked).await.is_empty());
    let hold = world.store.broker.attempt_quarantine(
        claimed,
        "it was spoiled",
        None,
        Duration::from_secs(60),
    );
    hold.await.expect("a hold");
    let found = lines(world, blocked).await;
    assert_eq!(found[0].blockers[0].code.as_str(), "row_invalid");
    assert!(found[0].holder.is_none(), "it was given back");

    let of = AttemptFilter { attempt: Some(declared.attempt), ..AttemptFilter::default() };
    assert_eq!(lines(world, of).await.len(), 1);
    assert!(lines(world, AttemptFilter { partition: Some(nowhere), ..of }).await.is_empty());
    let project = Some(ProjectId::new(world.uuid()));
    assert!(lines(world, AttemptFilter { project, ..of }).await.is_empty());
}

/// An attempt not yet proven gone counts in its phase, and as blocked.
pub(super) async fn attempts_are_counted_by_phase(world: &World) {
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let of = AttemptFilter { resource: Some(declared.resource), ..AttemptFilter::default() };
    let counts = async || {
        let counts = world.store.broker.phase_counts(of).await.expect("counts");
        let shown = counts.into_iter().map(|count| (count.phase, count.total, count.blocked));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(counts().await, [(Phase::Pending.to_string(), 1, 0)]);
    world.drive(declared.attempt, Phase::Enrolling).await;
    assert_eq!(counts().await, [(Phase::Enrolling.to_string(), 1, 0)]);
    let claimed = world.claim_now(declared.attempt).await;
    let hold = world.store.broker.attempt_quarantine(
        claimed,
        "it was spoiled",
        None,
        Duration::from_secs(60),
    );
    hold.await.expect("a hold");
    assert_eq!(counts().await, [(Phase::Enrolling.to_string(), 1, 1)]);
    let everywhere =
        world.store.broker.phase_counts(AttemptFilter::default()).await.expect("counts");
    let enrolling = everywhere.iter().find(|count| count.phase == "Enrolling").expect("one");
    assert!(enrolling.total >= enrolling.blocked && enrolling.blocked >= 1, "{enrolling:?}");
}
