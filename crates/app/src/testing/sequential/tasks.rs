//! Periodic tasks: one worker at a time, fenced, and no wake lost.

use std::time::Duration;

use slipway_core::ids::ClaimToken;

use crate::operations::port::Task;
use crate::testing::world::World;

const LEASE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

fn name(world: &World) -> String {
    format!("suite:{}", world.uuid())
}

async fn claim(world: &World, name: &str, lease: Duration) -> Option<ClaimToken> {
    world.store.operations.task_claim(name, "suite", lease).await.expect("an answer")
}

async fn find(world: &World, name: &str) -> Task {
    let tasks = world.store.operations.task_list().await.expect("a list");
    tasks.into_iter().find(|task| task.name == name).expect("the task is there")
}

pub(super) async fn a_task_is_due_when_it_was_said_and_sooner_if_asked(world: &World) {
    let name = name(world);
    assert_eq!(claim(world, &name, LEASE).await, None, "there is no such task");
    world.store.operations.task_ensure(&name, HOUR).await.expect("a task");
    assert_eq!(claim(world, &name, LEASE).await, None, "not yet");
    let due = find(world, &name).await.due_at;
    world.store.operations.task_ensure(&name, HOUR * 2).await.expect("the same task");
    assert_eq!(find(world, &name).await.due_at, due, "never later than it was");
    world.store.operations.task_ensure(&name, Duration::ZERO).await.expect("the same task");
    assert!(claim(world, &name, LEASE).await.is_some());
}

pub(super) async fn a_task_has_one_holder_and_late_ones_are_fenced(world: &World) {
    let name = name(world);
    let store = &world.store;
    store.operations.task_ensure(&name, Duration::ZERO).await.expect("a task");
    let late = claim(world, &name, Duration::ZERO).await.expect("it is due");
    let holder = claim(world, &name, LEASE).await.expect("that lease is over");
    assert!(holder > late);
    assert_eq!(claim(world, &name, LEASE).await, None, "somebody holds it");
    assert_eq!(find(world, &name).await.claimed_by.as_deref(), Some("suite"));
    store.operations.task_ensure(&name, Duration::ZERO).await.expect("the same task");
    assert_eq!(claim(world, &name, LEASE).await, None, "its holder says when it is due");

    assert!(!store.operations.task_release(&name, late, HOUR, None).await.expect("an answer"));
    assert!(
        store
            .operations
            .task_release(&name, holder, HOUR, Some("no luck"))
            .await
            .expect("an answer")
    );
    assert!(
        !store.operations.task_release(&name, holder, HOUR, None).await.expect("an answer"),
        "given back"
    );
    let task = find(world, &name).await;
    assert_eq!((task.claimed_by, task.last_error.as_deref()), (None, Some("no luck")));
    assert!(task.last_ended_at.is_some_and(|ended| task.due_at > ended));
    assert_eq!(claim(world, &name, LEASE).await, None, "not before its time");
}

pub(super) async fn a_task_loses_no_wake(world: &World) {
    let name = name(world);
    let store = &world.store;
    store.operations.task_ensure(&name, HOUR).await.expect("a task");
    store.operations.task_wake(&name).await.expect("a wake");
    let holder = claim(world, &name, LEASE).await.expect("it was woken");
    store.operations.task_wake(&name).await.expect("a wake");
    assert_eq!(claim(world, &name, LEASE).await, None, "somebody holds it");
    assert!(store.operations.task_release(&name, holder, HOUR, None).await.expect("an answer"));
    let again = claim(world, &name, LEASE).await.expect("it was woken meanwhile");
    assert!(store.operations.task_release(&name, again, HOUR, None).await.expect("an answer"));
    assert_eq!(claim(world, &name, LEASE).await, None, "nothing woke it since");
    assert_eq!(find(world, &name).await.last_error, None);
}

pub(super) async fn a_restart_takes_back_its_tasks_or_leaves_them_to_lapse(world: &World) {
    let (name, other) = (name(world), name(world));
    let store = &world.store;
    for task in [&name, &other] {
        store.operations.task_ensure(task, Duration::ZERO).await.expect("a task");
    }
    let worker = world.uuid().to_string();
    let dead =
        store.operations.task_claim(&name, &worker, LEASE).await.expect("an answer").expect("due");
    claim(world, &other, LEASE).await.expect("it is due");
    for task in [&name, &other] {
        store.operations.task_ensure(task, HOUR).await.expect("the start of the next life");
    }
    assert_eq!(claim(world, &name, LEASE).await, None, "the lease has to end first");
    for task in [&name, &other] {
        store.operations.task_reclaim(task, &worker).await.expect("its actions are over");
    }
    assert!(claim(world, &name, LEASE).await.is_some(), "due now");
    assert!(
        !store.operations.task_release(&name, dead, HOUR, None).await.expect("an answer"),
        "fenced off"
    );
    assert_eq!(claim(world, &other, LEASE).await, None, "another worker's is left alone");
}
