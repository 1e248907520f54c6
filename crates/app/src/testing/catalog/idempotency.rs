//! Idempotency keys.

use slipway_core::ErrorKind;
use slipway_core::access::idempotency::Answer;
use slipway_core::catalog::project::Project;

use crate::ports::Stores;
use crate::testing::world::{World, refused};

pub(super) async fn a_key_is_bound_with_what_it_made(world: &World) {
    let key = world.uuid().to_string();
    let request = world.request(&key, "one");
    assert_eq!(world.store.access.idempotency_find("suite", &key).await.expect("an answer"), None);
    let named = world.fresh_name("project");
    let made = world.create_project_bound(&named, Some(request.clone())).await.expect("a project");
    let bound = world.store.access.idempotency_find("suite", &key).await.expect("an answer");
    let bound = bound.expect("the key is bound");
    assert_eq!((bound.record.subject_id, bound.answer), (made.as_uuid(), None));
    assert_eq!(bound.record.request, request);
    let other = world.store.access.idempotency_find("another", &key).await.expect("an answer");
    assert_eq!(other, None, "a key is the caller's own");

    let second = world.fresh_name("project");
    let refusal = refused(world.create_project_bound(&second, Some(request)).await);
    assert_eq!(refusal, ErrorKind::IdempotencyKeyReused);
    let nothing = world.store.kind::<Project>().fetch(&second, true).await.expect("a fetch");
    assert_eq!(nothing, None, "nothing of the second is written");

    let unused = world.uuid().to_string();
    let taken = world.create_project_bound(&named, Some(world.request(&unused, "one"))).await;
    assert_eq!(refused(taken), ErrorKind::NameTaken);
    let free = world.store.access.idempotency_find("suite", &unused).await.expect("an answer");
    assert_eq!(free, None, "a refused request binds nothing");
}

pub(super) async fn the_first_answer_is_kept(world: &World) {
    let key = world.uuid().to_string();
    let named = world.fresh_name("project");
    let request = Some(world.request(&key, "one"));
    world.create_project_bound(&named, request).await.expect("a project");
    let find = async || {
        let found = world.store.access.idempotency_find("suite", &key).await.expect("an answer");
        found.expect("the key is bound")
    };
    let record = find().await.record;
    let answer = |body: &str| Answer {
        status: 201,
        location: Some("/somewhere".to_owned()),
        etag: None,
        body: body.to_owned(),
    };
    let first = answer("{\"ü\": 1}");
    let another =
        Answer { status: 202, location: None, etag: Some("e".to_owned()), ..answer("another") };
    for given in [&first, &another] {
        let stored = world.store.access.idempotency_answer(record.id, given).await;
        assert_eq!(stored.expect("it is kept").as_ref(), Some(&first));
    }
    assert_eq!(find().await.answer, Some(first));
}

/// An expired key is forgotten and can be bound to something else. Only an
/// adapter can make a key old, so it passes in `expire`.
pub async fn expired_key(store: Stores, expire: impl AsyncFn(&str)) {
    let world = World::new(store).await;
    let key = world.uuid().to_string();
    let create = async |body: &str| {
        let request = Some(world.request(&key, body));
        world.create_project_bound(&world.fresh_name("project"), request).await
    };
    create("one").await.expect("a project");
    let bound = world.store.access.idempotency_find("suite", &key).await.expect("an answer");
    let answer = Answer { status: 201, location: None, etag: None, body: "old".to_owned() };
    let record = bound.expect("the key is bound").record;
    world.store.access.idempotency_answer(record.id, &answer).await.expect("it is kept");
    expire(&key).await;
    let forgotten = world.store.access.idempotency_find("suite", &key).await.expect("an answer");
    assert_eq!(forgotten, None);
    let second = create("another").await.expect("the key is free again");
    let bound = world.store.access.idempotency_find("suite", &key).await.expect("an answer");
    let bound = bound.expect("the key is bound anew");
    assert_eq!((bound.record.subject_id, bound.answer), (second.as_uuid(), None));

    // Binding a key also removes expired keys of others.
    expire(&key).await;
    let other = Some(world.request(&world.uuid().to_string(), "one"));
    world.create_project_bound(&world.fresh_name("project"), other).await.expect("a project");
    let lost = world.store.access.idempotency_answer(bound.record.id, &answer).await;
    assert_eq!(lost.expect("no fault"), None);
}
