//! Grace, containers and protection.

use std::time::Duration;

use slipway_core::broker::delete;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::project::Project;
use slipway_core::commit::{Commit, Write};
use slipway_core::deletion::DeletionWrite;
use slipway_core::deletion::cancel::cancel;
use slipway_core::deletion::door::{Ask, Defaults, Doored};
use slipway_core::deletion::protection::{self, Protection};
use slipway_core::deletion::record::{Deletion, DeletionState};
use slipway_core::deletion::request;
use slipway_core::ids::{DeletionId, ResourceId};
use slipway_core::subject::Subject;
use slipway_core::text::Reason;
use slipway_core::{ErrorKind, Phase};

use crate::deletion::request::{DeletableKind, subject};
use crate::kind::StoredKind;
use crate::ports::store::{Error, Page};
use crate::testing::world::{World, operator, refused};

const HOUR: Duration = Duration::from_secs(3_600);

fn why() -> Reason {
    Reason::parse("the suite wants it").expect("a valid reason")
}

impl World {
    pub(in crate::testing) fn ask_with(&self, grace: Duration) -> Ask {
        Ask { grace: Some(grace), ..self.ask() }
    }

    pub(in crate::testing) async fn cancel(&self, id: DeletionId) -> Result<(), Error> {
        let mut rule = |snapshot: &_| cancel(snapshot, &why(), &operator());
        self.store.deletion.deletion_decide(id, &mut rule).await
    }

    /// Begins the deletion of a resource, as the loop does.
    pub(in crate::testing) async fn begin(&self, resource: ResourceId) -> Result<(), Error> {
        let mut rule = |snapshot: &Doored<ResourceSnapshot>| {
            delete::start(&snapshot.of, &snapshot.door, &operator())
        };
        self.store.broker.decide_deletion(resource, Defaults::default().into(), &mut rule).await
    }

    async fn begin_row<K: DeletableKind>(&self, key: &<K as StoredKind>::Key) -> Result<(), Error> {
        let mut rule =
            |snapshot: &Doored<_>| request::start::<K>(&snapshot.of, &snapshot.door, &operator());
        let store = self.store.kind::<K>();
        store.decide_deletion(key, subject::<K>, Defaults::default().into(), &mut rule).await
    }

    /// Takes the members of a running deletion down, and the container further.
    pub(in crate::testing) async fn advance(&self, id: DeletionId) {
        let container = self.deletion(id).await;
        let project = container.project_id.expect("a project");
        let broker = &self.store.broker;
        let staying = broker.attempt_staying(project, 100).await.expect("attempts");
        let mut rule = |snapshot: &ResourceSnapshot| {
            Ok(delete::start_member(snapshot, &container, &operator()))
        };
        for (_, decided) in broker.decide_many(&staying, &mut rule).await.expect("decisions") {
            decided.expect("a member is taken down");
        }
        let mut rule = |snapshot: &_| Ok(request::advance(snapshot, &operator()));
        self.store.deletion.deletion_decide(id, &mut rule).await.expect("a step");
    }

    pub(in crate::testing) async fn deletion(&self, id: DeletionId) -> Deletion {
        let found = self.store.deletion.deletion_fetch(id).await.expect("a fetch");
        found.expect("the deletion")
    }

    pub(in crate::testing) async fn protect(&self, subject: Subject) -> Result<(), Error> {
        let mut rule = |snapshot: &_| protection::protect(snapshot, &why(), &operator());
        self.store.deletion.protection_decide(subject, &mut rule).await
    }

    async fn due(&self) -> Vec<DeletionId> {
        let page = Page { after: None, limit: 1_000 };
        let due = self.store.deletion.deletion_due(page).await.expect("what is due");
        due.iter().map(|deletion| deletion.id).collect()
    }
}

/// Grace touches nothing, and cancelling it leaves everything as it was.
pub(super) async fn a_deletion_waits_for_its_grace_and_can_be_cancelled(world: &World) {
    let (declared, _) = world.ready().await;
    let before = world.snapshot(declared.attempt).await;
    let id = world.delete_as(declared.resource, &world.ask_with(HOUR)).await.expect("a deletion");
    let scheduled = world.deletion(id).await;
    assert_eq!(scheduled.state, DeletionState::Scheduled);
    let at = scheduled.scheduled_for.expect("a time");
    assert!(at.since(scheduled.requested_at) >= HOUR, "{scheduled:?}");
    let during = world.snapshot(declared.attempt).await;
    assert_eq!(during.attempt, before.attempt, "the attempt is untouched");
    assert_eq!(during.token.map(|token| token.revoked_at), before.token.map(|t| t.revoked_at));
    assert_eq!(during.resource.deletion_id, Some(id));
    assert!(!world.due().await.contains(&id));
    let again = world.delete_as(declared.resource, &world.ask_with(HOUR * 2)).await;
    assert_eq!(again.expect("the same"), id);
    let members = world.store.deletion.deletion_members(id, 10).await.expect("members");
    assert_eq!((members.count, members.shown[0].subject), (1, declared.resource.into()));

    world.cancel(id).await.expect("it can be cancelled");
    world.cancel(id).await.expect("again changes nothing");
    assert_eq!(world.deletion(id).await.state, DeletionState::Cancelled);
    let after = world.snapshot(declared.attempt).await;
    assert_eq!(after.attempt, before.attempt);
    assert_eq!(after.resource.deletion_id, None);
    world.begin(declared.resource).await.expect("there is nothing to begin");
    assert_eq!(world.snapshot(declared.attempt).await.attempt.phase(), Phase::Ready);
}

pub(super) async fn a_deletion_begins_when_its_grace_ends(world: &World) {
    let (declared, _) = world.ready().await;
    let id = world.delete_as(declared.resource, &world.ask_with(HOUR)).await.expect("a deletion");
    // Brought forward to now.
    let sooner = world.delete_as(declared.resource, &world.ask_with(Duration::ZERO)).await;
    assert_eq!(sooner.expect("the same"), id);
    assert!(world.due().await.contains(&id));
    let next = world.store.deletion.deletion_next_due().await.expect("a time");
    assert_eq!(next, Some(Duration::ZERO));
    world.begin(declared.resource).await.expect("it begins");
    assert_eq!(world.deletion(id).await.state, DeletionState::Running);
    assert!(!world.due().await.contains(&id));
    assert_eq!(refused(world.cancel(id).await), ErrorKind::NotCancellable);
    assert_eq!(world.snapshot(declared.attempt).await.attempt.phase(), Phase::Deregistering);
    world.begin(declared.resource).await.expect("again changes nothing");
    world.force(declared.resource).await.expect("nobody waits for the node");
    world.drive(declared.attempt, Phase::Deleted).await;
    let done = world.deletion(id).await;
    assert_eq!(done.state, DeletionState::Done);
    let kept = done.restorable_until.expect("it is kept").since(done.done_at.expect("a time"));
    assert_eq!(kept, Defaults::default().retention);
}

/// What is deleted on record only has grace like everything else, and is checked again
/// when that ends.
pub(super) async fn a_row_is_deleted_when_its_grace_ends_if_nothing_needs_it(world: &World) {
    let named = world.fresh_name("cloud");
    world.create_cloud(&named).await.expect("a cloud");
    let id = world.remove::<Cloud>(&named, &world.ask_with(HOUR)).await.expect("a deletion");
    let cloud = world.store.kind::<Cloud>().fetch(&named, false).await.expect("a fetch");
    let cloud = cloud.expect("it is there until then");
    assert_eq!((cloud.deletion_id, cloud.deleted_at), (Some(id), None));
    let credential = world.create_credential(&named, "late").await.expect("a credential");
    assert_eq!(refused(world.begin_row::<Cloud>(&named).await), ErrorKind::CloudInUse);
    assert_eq!(world.deletion(id).await.state, DeletionState::Scheduled);
    world.delete_credential(credential).await.expect("it goes");
    world.begin_row::<Cloud>(&named).await.expect("it begins");
    assert_eq!(world.deletion(id).await.state, DeletionState::Done);
    assert!(world.store.kind::<Cloud>().fetch(&named, false).await.expect("a fetch").is_none());
}

/// A project goes after what is in it; what somebody scheduled before goes with it, and
/// stays scheduled if the project stays.
pub(super) async fn a_project_is_deleted_with_what_is_in_it(world: &World) {
    let (project, _) = world.furnished().await;
    let first = world.declare_in(&project).await.expect("a declaration");
    let second = world.declare_in(&project).await.expect("a declaration");
    let child = world.delete_as(second.resource, &world.ask_with(HOUR)).await.expect("a deletion");
    let alone = world.remove::<Project>(&project, &world.ask()).await;
    assert_eq!(refused(alone), ErrorKind::ProjectNotEmpty);

    let ask = Ask { cascade: true, ..world.ask_with(HOUR) };
    let id = world.remove::<Project>(&project, &ask).await.expect("a deletion");
    assert_eq!(world.deletion(id).await.resources, 2);
    assert_eq!(world.deletion(child).await.parent, Some(id), "it is taken over");
    assert_eq!(world.snapshot(first.attempt).await.resource.deletion_id, Some(id));
    assert_eq!(world.snapshot(second.attempt).await.resource.deletion_id, Some(child));
    let members = world.store.deletion.deletion_members(id, 10).await.expect("members");
    assert_eq!(members.count, 2, "the project and the first: {members:?}");
    assert_eq!(refused(world.declare_in(&project).await), ErrorKind::ProjectLeaving);

    world.cancel(id).await.expect("it can be cancelled");
    assert_eq!(world.snapshot(first.attempt).await.resource.deletion_id, None);
    let left = world.deletion(child).await;
    assert_eq!((left.state, left.parent), (DeletionState::Scheduled, None));

    let ask = Ask { cascade: true, ..world.ask() };
    let id = world.remove::<Project>(&project, &ask).await.expect("a deletion");
    assert_eq!(world.deletion(id).await.state, DeletionState::Running);
    assert!(world.due().await.contains(&child), "it begins with its parent");
    let containers = world.store.deletion.deletion_containers(Page { after: None, limit: 100 });
    assert!(containers.await.expect("containers").iter().any(|deletion| deletion.id == id));
    world.begin(second.resource).await.expect("the child begins");
    world.advance(id).await;
    for attempt in [first.attempt, second.attempt] {
        assert!(world.snapshot(attempt).await.attempt.phase().is_deletion());
    }
    world.advance(id).await;
    assert_eq!(world.deletion(id).await.state, DeletionState::Running, "they are not gone yet");
    world.drive_many(&[first.attempt, second.attempt], Phase::Deleted).await;
    world.advance(id).await;
    assert_eq!(world.deletion(id).await.state, DeletionState::Done);
    assert_eq!(world.deletion(child).await.state, DeletionState::Done);
    let gone = world.store.kind::<Project>().fetch(&project, false).await.expect("a fetch");
    assert!(gone.is_none());
}

/// Every door refuses, that of the container too, and that of the end of grace.
pub(super) async fn what_is_protected_stays(world: &World) {
    let (project, _) = world.furnished().await;
    let declared = world.declare_in(&project).await.expect("a declaration");
    let subject = Subject::from(declared.resource);
    let scheduled = world.delete_as(declared.resource, &world.ask_with(HOUR)).await;
    let scheduled = scheduled.expect("a deletion");
    world.protect(subject).await.expect("it can be protected until it is taken down");
    world.protect(subject).await.expect("again changes nothing");
    assert_eq!(refused(world.begin(declared.resource).await), ErrorKind::Protected);
    world.cancel(scheduled).await.expect("it can be cancelled");
    assert_eq!(refused(world.delete(declared.resource).await), ErrorKind::Protected);
    let ask = Ask { cascade: true, ..world.ask() };
    assert_eq!(refused(world.remove::<Project>(&project, &ask).await), ErrorKind::Protected);
    let listed = world.store.deletion.protection_list(None, Page { after: None, limit: 500 });
    assert!(listed.await.expect("a list").iter().any(|found| found.subject == subject));

    let mut lift = |snapshot: &_| protection::lift(snapshot, HOUR, &why(), &operator());
    world.store.deletion.protection_decide(subject, &mut lift).await.expect("it is lifted");
    assert_eq!(world.events_of(subject.id).await, ["deletion.ProtectionLifted"]);
    world.delete(declared.resource).await.expect("a deletion");
    let mut unprotect = |snapshot: &_| Ok(protection::unprotect(snapshot, &why(), &operator()));
    world.store.deletion.protection_decide(subject, &mut unprotect).await.expect("it goes");
    assert_eq!(refused(world.protect(subject).await), ErrorKind::Leaving, "it comes too late");
}

/// Its protection holds again if it comes back, and until then it protects nothing.
pub(super) async fn what_is_deleted_protects_no_project(world: &World) {
    let (project, _) = world.furnished().await;
    let declared = world.declare_in(&project).await.expect("a declaration");
    let subject = Subject::from(declared.resource);
    let deletion = world.delete(declared.resource).await.expect("a deletion");
    world.drive(declared.attempt, Phase::Deleted).await;
    // As it is when a protection that was lifted for the deletion holds again.
    let write = DeletionWrite::Protect(Protection {
        subject,
        project_id: world.deletion(deletion).await.project_id,
        name: "web-1".to_owned(),
        set_by: "key:suite".to_owned(),
        reason: "holds the books".to_owned(),
        set_at: world.store.operations.database_now().await.expect("a clock"),
        lifted: None,
    });
    let commit = Commit { writes: vec![Write::Deletion(write)], ..Commit::default() };
    let mut rule = |_: &_| Ok(commit.clone());
    world.store.deletion.deletion_decide(deletion, &mut rule).await.expect("it is protected");
    world.remove::<Project>(&project, &world.ask()).await.expect("nothing in it is protected");
}
