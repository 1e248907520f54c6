//! Plans that a second person approves.

use std::sync::Arc;
use std::time::Duration;

use slipway_core::ErrorKind;
use slipway_core::access::api_key::ApiKey;
use slipway_core::access::api_key_rules::{self, NewKey};
use slipway_core::access::audit::Actor;
use slipway_core::access::role::Role;
use slipway_core::catalog::project::Project;
use slipway_core::deletion::approval::{APPROVED_FOR, PlanSnapshot, approve};
use slipway_core::deletion::brake::Limits;
use slipway_core::deletion::door::{Ask, Braked, Defaults, DoorInput, Doored};
use slipway_core::deletion::plan::Plan;
use slipway_core::deletion::request;
use slipway_core::ids::{ApiKeyId, DeletionId};
use slipway_core::precondition::Expected;
use slipway_core::text::Reason;

use crate::access::port::KeyTarget;
use crate::deletion::request::subject;
use crate::ports::store::Error;
use crate::testing::races::at_once;
use crate::testing::world::{World, refused};

/// A key of a person.
#[derive(Debug, Clone)]
struct Person {
    id: ApiKeyId,
    name: String,
}

impl Person {
    fn actor(&self) -> Actor {
        Actor::new(format!("key:{}", self.name))
    }
}

/// Above one resource a deletion needs an approval.
const LIMITED: Defaults = Defaults {
    grace: Duration::ZERO,
    retention: Duration::from_secs(86_400),
    approve_above: Some(1),
    purge_protected: false,
};

impl World {
    async fn person(&self, owner: &str, maker: &Actor) -> Person {
        let new = NewKey { owner: owner.to_owned(), ..self.new_key(Role::Operator, None) };
        let target = KeyTarget::New { name: new.name.clone(), project: None };
        let mut rule = |snapshot: &_| api_key_rules::create(snapshot, &new, maker);
        self.store.kind::<ApiKey>().decide(&target, &mut rule).await.expect("a key");
        Person { id: new.id, name: new.name }
    }

    async fn rotated_by(&self, person: &Person, by: &Person) {
        let secret = self.new_secret();
        let (key, actor) = (KeyTarget::Existing(person.id), by.actor());
        let mut rule = |snapshot: &_| {
            api_key_rules::rotate(snapshot, &secret, Duration::ZERO, Expected::Any, &actor)
        };
        self.store.kind::<ApiKey>().decide(&key, &mut rule).await.expect("another text");
    }

    /// A project with two resources, and a plan of its deletion.
    async fn planned_by(&self, person: &Person) -> (String, Plan) {
        let (project, _) = self.furnished().await;
        for _ in 0..2 {
            self.declare_in(&project).await.expect("a declaration");
        }
        let by = person.actor().name;
        let change = |plan: &mut Plan| plan.planned_by.clone_from(&by);
        let plan = self.plan_row::<Project>(&project, true, change).await.expect("a plan");
        (project, plan)
    }

    async fn approve(&self, plan: &Plan, person: &Person) -> Result<(), Error> {
        let reason = Reason::parse("looks right").expect("a valid reason");
        let actor = person.actor();
        let mut rule = |snapshot: &PlanSnapshot| approve(snapshot, &reason, &actor);
        self.store.deletion.plan_decide(plan.id, Some(&person.name), &mut rule).await
    }

    async fn delete_as_person(
        &self,
        project: &str,
        ask: &Ask,
        person: &Person,
    ) -> Result<DeletionId, Error> {
        let limits = Limits { resources: 1, ..Limits::default() };
        let caller = Braked { key: person.id, name: person.name.clone(), limits };
        let input = DoorInput { caller: Some(caller), ..ask.input(LIMITED) };
        let mut refused = None;
        let mut rule = |snapshot: &Doored<_>| {
            let (of, door) = (&snapshot.of, &snapshot.door);
            let requested = request::request::<Project>(of, door, ask, &person.actor())?;
            refused = requested.refused;
            Ok(requested.commit)
        };
        let store = self.store.kind::<Project>();
        store.decide_deletion(project, subject::<Project>, input, &mut rule).await?;
        refused.map_or(Ok(ask.deletion_id), |refusal| Err(refusal.into()))
    }
}

/// Whoever asks, plans and approves under several keys is one person.
pub(super) async fn a_second_person_approves(world: &World) {
    let admin = Actor::new("key:somebody");
    let ada = world.person("ada", &admin).await;
    let laptop = world.person("Ada", &admin).await;
    let made = world.person("eve", &ada.actor()).await;
    let deeper = world.person("mallory", &made.actor()).await;
    let bob = world.person("bob", &admin).await;
    let (project, plan) = world.planned_by(&ada).await;
    for same in [&ada, &laptop, &made, &deeper] {
        assert_eq!(refused(world.approve(&plan, same).await), ErrorKind::SamePerson, "{same:?}");
    }
    let ask = world.ask_by(&plan);
    let unapproved = Ask { grace: None, ..ask.clone() };
    let stopped = world.delete_as_person(&project, &unapproved, &ada).await;
    assert_eq!(refused(stopped), ErrorKind::DeletionBrake, "the brake comes first");

    world.approve(&plan, &bob).await.expect("a second person");
    world.approve(&plan, &bob).await.expect("again changes nothing");
    let stored = world.store.deletion.plan_fetch(plan.id).await.expect("a read").expect("a plan");
    let approval = stored.approval.expect("an approval");
    assert_eq!(approval.by, bob.name);
    assert_eq!(approval.until.since(approval.at), APPROVED_FOR);
    assert_eq!(stored.expires_at, approval.until);
    assert_eq!(stored.revision, plan.revision.next());
    // Ada's brake is on since, and the approved plan passes it.
    let id = world.delete_as_person(&project, &ask, &ada).await.expect("it is approved");
    let used = world.approve(&plan, &bob).await;
    assert_eq!(refused(used), ErrorKind::PlanUsed);
    let again = Ask { deletion_id: DeletionId::new(world.uuid()), ..ask.clone() };
    world.delete_as_person(&project, &again, &ada).await.expect("the same deletion");
    assert_eq!(world.deletion(id).await.resources, 2);
}

/// Who approved a plan, or rotated the key of who did, does not use it.
pub(super) async fn the_two_people_are_two_at_the_door(world: &World) {
    let admin = Actor::new("key:somebody");
    let (ada, bob) = (world.person("ada", &admin).await, world.person("bob", &admin).await);
    let carol = world.person("carol", &admin).await;
    let (project, plan) = world.planned_by(&ada).await;
    world.approve(&plan, &bob).await.expect("a second person");
    let glass = Ask { break_glass: true, ..world.ask_by(&plan) };
    let without = Ask { plan: None, ..world.ask_by(&plan) };
    // A brake of their own that does not stop them.
    let alone = async |ask: &Ask, person: &Person| {
        let limits = Limits { resources: 0, ..Limits::default() };
        let caller = Braked { key: person.id, name: person.name.clone(), limits };
        let input = DoorInput { caller: Some(caller), ..ask.input(LIMITED) };
        let mut rule = |snapshot: &Doored<_>| {
            let (of, door) = (&snapshot.of, &snapshot.door);
            Ok(request::request::<Project>(of, door, ask, &person.actor())?.commit)
        };
        let store = world.store.kind::<Project>();
        store.decide_deletion(&*project, subject::<Project>, input, &mut rule).await
    };
    assert_eq!(refused(alone(&without, &ada).await), ErrorKind::ApprovalRequired);
    let same = alone(&world.ask_by(&plan), &bob).await;
    assert_eq!(refused(same), ErrorKind::SamePerson, "bob approved it");
    world.rotated_by(&carol, &bob).await;
    let same = alone(&world.ask_by(&plan), &carol).await;
    assert_eq!(refused(same), ErrorKind::SamePerson, "bob has carol's text");
    alone(&glass, &bob).await.expect("an admin may, and it is announced");
}

/// An approval and the use of the plan at once: the deletion is approved, or refused.
pub(in crate::testing) async fn approval_with_delete(world: &Arc<World>) {
    let admin = Actor::new("key:somebody");
    let (ada, bob) = (world.person("ada", &admin).await, world.person("bob", &admin).await);
    let (project, plan) = world.planned_by(&ada).await;
    let ask = world.ask_by(&plan);
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let planned = plan.clone();
    let (approved, deleted) = at_once(async move { a.approve(&planned, &bob).await }, async move {
        b.delete_as_person(&project, &ask, &ada).await
    })
    .await;
    approved.expect("nobody used it");
    let stored = world.store.deletion.plan_fetch(plan.id).await.expect("a read").expect("a plan");
    match deleted {
        Ok(id) => assert_eq!(stored.used_by, Some(id)),
        Err(error) => {
            let kind = refused::<()>(Err(error));
            let early = [ErrorKind::DeletionBrake, ErrorKind::RevisionStale];
            assert!(early.contains(&kind), "{kind:?}");
            assert_eq!(stored.used_by, None);
        }
    }
}
