//! What was deleted comes back: exactly the members of its deletion, or nothing.

use std::sync::Arc;

use slipway_core::catalog::blueprint::Blueprint;
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::credential::Credential;
use slipway_core::catalog::label::{self, LabelDefinition, LabelKey};
use slipway_core::catalog::project::Project;
use slipway_core::commit::Commit;
use slipway_core::deletion::door::Ask;
use slipway_core::deletion::record::DeletionState;
use slipway_core::deletion::restore::{self, Conflict, Renames, RestoreSnapshot};
use slipway_core::ids::{DeletionId, LabelDefinitionId, ProvisionedResourceId, ResourceId};
use slipway_core::placement::cluster::Cluster;
use slipway_core::placement::namespace::NamespacePhase;
use slipway_core::subject::SubjectKind;
use slipway_core::text::Reason;
use slipway_core::{ErrorKind, Phase};

use crate::broker::port::ResourceFilter;
use crate::catalog::port::CredentialKey;
use crate::deletion::port::DeletionFilter;
use crate::kind::StoredKind;
use crate::placement::port::Found;
use crate::ports::store::{Error, Page};
use crate::testing::catalog::placement::see;
use crate::testing::races::at_once;
use crate::testing::world::{Declared, World, operator, refused};

impl World {
    fn restore_ask(redeclare: bool, renames: Renames) -> restore::Ask {
        let reason = Reason::parse("deleted by mistake").expect("a valid reason");
        restore::Ask { reason, renames, redeclare }
    }

    async fn restore_as(&self, id: DeletionId, ask: &restore::Ask) -> Result<(), Error> {
        let mut rule = |snapshot: &RestoreSnapshot| {
            restore::restore(snapshot, ask, &operator())?.agreed(&snapshot.deletion)
        };
        self.store.deletion.restore_decide(id, &ask.renames, &mut rule).await
    }

    async fn restore(&self, id: DeletionId) -> Result<(), Error> {
        self.restore_as(id, &Self::restore_ask(false, Renames::default())).await
    }

    async fn redeclare(&self, id: DeletionId) -> Result<(), Error> {
        self.restore_as(id, &Self::restore_ask(true, Renames::default())).await
    }

    async fn restore_renamed(&self, id: DeletionId, name: &str) -> Result<(), Error> {
        let renames = Renames { target: Some(name.to_owned()), ..Renames::default() };
        self.restore_as(id, &Self::restore_ask(true, renames)).await
    }

    /// What a dry run finds in the way.
    async fn conflicts(&self, id: DeletionId) -> Vec<Conflict> {
        let ask = Self::restore_ask(true, Renames::default());
        let mut found = Vec::new();
        let mut rule = |snapshot: &RestoreSnapshot| {
            found = restore::restore(snapshot, &ask, &operator())?.conflicts;
            Ok(Commit::default())
        };
        let decided = self.store.deletion.restore_decide(id, &ask.renames, &mut rule).await;
        decided.expect("a dry run");
        found
    }

    async fn is_live<K: StoredKind>(&self, reference: &str) -> bool {
        self.store.kind::<K>().fetch(reference, false).await.expect("a fetch").is_some()
    }

    /// Comes back once, and lives on as before.
    async fn comes_back<K: StoredKind>(&self, reference: &str, deletion: DeletionId) {
        assert!(!self.is_live::<K>(reference).await, "{}", K::KIND);
        self.restore(deletion).await.unwrap_or_else(|error| panic!("{}: {error}", K::KIND));
        let restored = self.deletion(deletion).await;
        assert_eq!(restored.state, DeletionState::Restored);
        assert!(self.is_live::<K>(reference).await, "{}", K::KIND);
        self.restore(deletion).await.expect("again changes nothing");
        assert_eq!(self.deletion(deletion).await.revision, restored.revision);
        let members = self.store.deletion.deletion_members(deletion, 10).await.expect("members");
        assert_eq!(members.count, 0, "nothing carries it any more");
    }

    async fn define_label(&self) -> String {
        let key = format!("cost/{}", &self.uuid().simple().to_string()[16..]);
        let new = label::NewLabel {
            id: LabelDefinitionId::new(self.uuid()),
            key: LabelKey::parse("key", &key).expect("a valid key"),
            description: String::new(),
            propagate: true,
        };
        let mut rule = |snapshot: &_| label::define(snapshot, &new, &operator());
        self.store.kind::<LabelDefinition>().decide(&key, &mut rule).await.expect("a label");
        key
    }

    /// Deletes a project with what is in it.
    async fn gone_with(&self, project: &str, members: &[Declared]) -> DeletionId {
        let ask = Ask { cascade: true, ..self.ask() };
        let id = self.remove::<Project>(project, &ask).await.expect("a deletion");
        self.advance(id).await;
        let attempts: Vec<_> = members.iter().map(|member| member.attempt).collect();
        self.drive_many(&attempts, Phase::Deleted).await;
        self.advance(id).await;
        assert_eq!(self.deletion(id).await.state, DeletionState::Done);
        id
    }

    async fn live_in(&self, project: &str) -> Vec<(ResourceId, i32, Phase)> {
        let filter =
            ResourceFilter { project: Some(project.to_owned()), ..ResourceFilter::default() };
        let page = Page { after: None, limit: 100 };
        let found = self.store.broker.resource_list(&filter, page).await.expect("a list");
        let rows = found.into_iter().map(|row| row.expect("the row is valid"));
        rows.map(|row| (row.resource.id, row.attempt.attempt(), row.attempt.phase())).collect()
    }

    /// The attempt that fills the slot now.
    async fn current(&self, resource: ResourceId) -> ProvisionedResourceId {
        let found = self.store.broker.resource_fetch(resource).await.expect("a fetch");
        found.expect("the resource").attempt.id()
    }
}

pub(super) async fn every_kind_comes_back(world: &World) {
    let named = world.fresh_name("project");
    world.create_project(&named).await.expect("a project");
    let deletion = world.delete_project(&named).await.expect("a deletion");
    world.comes_back::<Project>(&named, deletion).await;
    let again = world.delete_project(&named).await.expect("it can be deleted again");
    assert_ne!(again, deletion);
    world.comes_back::<Project>(&named, again).await;

    let named = world.fresh_name("cloud");
    world.create_cloud(&named).await.expect("a cloud");
    let credential = world.create_credential(&named, "main").await.expect("a credential");
    let key = CredentialKey::Existing(credential);
    let inner = world.remove::<Credential>(&key, &world.ask()).await.expect("a deletion");
    world.comes_back::<Credential>(&credential.to_string(), inner).await;
    let inner = world.remove::<Credential>(&key, &world.ask()).await.expect("a deletion");
    let outer = world.remove::<Cloud>(&named, &world.ask()).await.expect("a deletion");
    let conflicts = world.conflicts(inner).await;
    let codes: Vec<_> = conflicts.iter().map(|one| (one.code, one.kind)).collect();
    assert_eq!(codes, [("needed_deleted", SubjectKind::Cloud)], "{conflicts:?}");
    assert!(conflicts[0].message.contains(&outer.to_string()), "{conflicts:?}");
    assert_eq!(refused(world.restore(inner).await), ErrorKind::RestoreConflict);
    world.comes_back::<Cloud>(&named, outer).await;
    world.comes_back::<Credential>(&credential.to_string(), inner).await;

    let named = world.fresh_name("cluster");
    world.create_managed(&named, "eu").await.expect("a cluster");
    let deletion = world.delete_cluster(&named).await.expect("a deletion");
    world.comes_back::<Cluster>(&named, deletion).await;

    let slug = world.fresh_name("blueprint");
    world.create_blueprint(&slug).await.expect("a blueprint");
    let deletion = world.delete_blueprint(&slug).await.expect("a deletion");
    world.comes_back::<Blueprint>(&slug, deletion).await;

    let key = world.define_label().await;
    let deletion = world.delete_label(&key).await.expect("a deletion");
    world.comes_back::<LabelDefinition>(&key, deletion).await;
}

/// A name belongs to whoever has it; what was deleted comes back with another one.
pub(super) async fn a_taken_name_is_a_conflict(world: &World) {
    let named = world.fresh_name("cloud");
    world.create_cloud(&named).await.expect("a cloud");
    let deletion = world.remove::<Cloud>(&named, &world.ask()).await.expect("a deletion");
    let other = world.create_cloud(&named).await.expect("the name is free");
    assert_eq!(refused(world.restore(deletion).await), ErrorKind::RestoreConflict);
    assert_eq!(world.conflicts(deletion).await[0].code, "name_taken");
    assert_eq!(world.deletion(deletion).await.state, DeletionState::Done, "nothing was written");
    let held = world.fresh_name("cloud");
    world.create_cloud(&held).await.expect("a cloud");
    assert_eq!(
        refused(world.restore_renamed(deletion, &held).await),
        ErrorKind::RestoreConflict,
        "the new name is taken as well"
    );
    let free = world.fresh_name("cloud");
    world.restore_renamed(deletion, &free).await.expect("it comes back");
    assert!(world.is_live::<Cloud>(&free).await);
    let found = world.store.kind::<Cloud>().fetch(&named, false).await.expect("a fetch");
    assert_eq!(found.expect("the other").id, other);
    assert_eq!(refused(world.create_cloud(&free).await.map(drop)), ErrorKind::NameTaken);
}

/// A project comes back to the cluster that it was on, if that is there.
pub(super) async fn a_project_needs_its_cluster(world: &World) {
    let (cluster, project) = (world.fresh_name("cluster"), world.fresh_name("project"));
    let cluster_id = world.create_managed(&cluster, "eu").await.expect("a cluster");
    let id = world.create_project(&project).await.expect("a project");
    world.assignment(&project, &cluster).await.expect("a place");
    see(world, id, NamespacePhase::Ready, Some("uid-1")).await;
    let deletion = world.delete_project(&project).await.expect("a deletion");
    assert_eq!(refused(world.restore(deletion).await), ErrorKind::NotRestorable, "it runs");
    see(world, id, NamespacePhase::Deleted, None).await;
    world.advance(deletion).await;
    let outer = world.delete_cluster(&cluster).await.expect("nothing is placed on it");
    let conflicts = world.conflicts(deletion).await;
    assert_eq!((conflicts.len(), conflicts[0].id), (1, cluster_id.as_uuid()), "{conflicts:?}");
    world.restore(outer).await.expect("the cluster comes back");
    world.restore(deletion).await.expect("the project comes back");
    let placed = world.store.placement.cluster_assignment_fetch(id).await.expect("a fetch");
    assert_eq!(placed.expect("its placement").cluster_id, cluster_id);
    let listed = world.store.placement.project_namespace_list(cluster_id).await.expect("a list");
    assert!(!listed[0].is_leaving(), "the loop makes its namespace anew");
    assert_eq!(refused(world.delete_cluster(&cluster).await), ErrorKind::ClusterInUse);
}

/// Two rows for one cluster would each act on it.
pub(super) async fn a_cluster_that_is_registered_again_stays_deleted(world: &World) {
    let (first, second) = (world.fresh_name("cluster"), world.fresh_name("cluster"));
    let identity = world.fresh_name("uid");
    let mut deletions = Vec::new();
    for named in [&first, &second] {
        let id = world.create_managed(named, "eu").await.expect("a cluster");
        let found = Found {
            identity: Some(identity.clone()),
            problem: None,
            facts: serde_json::Value::Null,
        };
        world.store.placement.cluster_verified(id, &found).await.expect("a verification");
        if named == &first {
            deletions.push(world.delete_cluster(named).await.expect("a deletion"));
        }
    }
    let conflicts = world.conflicts(deletions[0]).await;
    assert_eq!(conflicts[0].code, "cluster_in_use", "{conflicts:?}");
    assert!(conflicts[0].message.contains(&second), "{conflicts:?}");
    world.delete_cluster(&second).await.expect("a deletion");
    world.comes_back::<Cluster>(&first, deletions[0]).await;
}

/// What was deleted with the project, and nothing that was deleted before.
pub(super) async fn a_project_comes_back_with_its_members(world: &World) {
    let (project, credential) = world.furnished().await;
    let (earlier, _) = world.deleted_in(&project).await;
    let first = world.declare_in(&project).await.expect("a declaration");
    let second = world.declare_in(&project).await.expect("a declaration");
    let id = world.gone_with(&project, &[first, second]).await;
    assert_eq!(refused(world.restore(id).await), ErrorKind::SubstrateGone);
    let key = CredentialKey::Existing(credential);
    let used = world.remove::<Credential>(&key, &world.ask()).await.expect("nothing live uses it");
    let conflicts = world.conflicts(id).await;
    let codes: Vec<_> = conflicts.iter().map(|one| (one.code, one.kind)).collect();
    assert_eq!(codes, [("needed_deleted", SubjectKind::Credential)], "once: {conflicts:?}");
    assert_eq!(refused(world.redeclare(id).await), ErrorKind::RestoreConflict);
    assert!(!world.is_live::<Project>(&project).await, "all or nothing");

    world.restore(used).await.expect("the credential comes back");
    world.redeclare(id).await.expect("the project comes back");
    assert_eq!(world.deletion(id).await.state, DeletionState::Restored);
    let mut live = world.live_in(&project).await;
    live.sort_unstable_by_key(|(id, ..)| *id);
    let expected = [first, second].map(|member| (member.resource, 2, Phase::Pending));
    assert_eq!(live, expected, "and not {}", earlier.resource);
    assert_eq!(world.snapshot(earlier.attempt).await.attempt.phase(), Phase::Deleted);

    let next = world.current(first.resource).await;
    world.drive(next, Phase::Enrolling).await;
    let token = world.token(next).await;
    world.enrol(token, world.public_key()).await.expect("a node enrols: the mesh has addresses");
    world.drive(next, Phase::Ready).await;
    world.declare_in(&project).await.expect("the project takes new ones");
    let ask = Ask { cascade: true, ..world.ask() };
    let again = world.remove::<Project>(&project, &ask).await.expect("it can be deleted again");
    assert_eq!(world.deletion(again).await.resources, 3);
}

pub(super) async fn a_resource_comes_back_as_a_new_attempt(world: &World) {
    let (project, _) = world.furnished().await;
    let (declared, id) = world.deleted_in(&project).await;
    assert_eq!(refused(world.restore(id).await), ErrorKind::SubstrateGone);
    let outer = world.delete_project(&project).await.expect("it is empty");
    assert_eq!(world.conflicts(id).await[0].kind, SubjectKind::Project);
    world.restore(outer).await.expect("the project comes back");
    world.redeclare(id).await.expect("the resource comes back");
    world.redeclare(id).await.expect("again changes nothing");
    assert_eq!(world.live_in(&project).await, [(declared.resource, 2, Phase::Pending)]);
    let second = world.current(declared.resource).await;
    let before = world.snapshot(declared.attempt).await.attempt;
    let after = world.snapshot(second).await;
    assert_eq!(after.attempt.parameter_values(), before.parameter_values());
    assert_eq!((after.resource.deletion_id, after.resource.deleted_at), (None, None));

    let again = world.delete(declared.resource).await.expect("a deletion");
    assert_ne!(again, id);
    world.drive(second, Phase::Deleted).await;
    let handle = after.resource.handle.to_string();
    let mut key = world.declare_key_in(&project);
    key.handle.clone_from(&handle);
    world.declare_by(&key).await.expect("the handle is free");
    assert_eq!(world.conflicts(again).await[0].code, "name_taken");
    let other = world.handle();
    world.restore_renamed(again, &other).await.expect("it comes back under another name");
    let third = world.current(declared.resource).await;
    assert_eq!(world.snapshot(third).await.resource.handle.as_str(), other);
    assert_eq!(world.snapshot(third).await.attempt.attempt(), 3);
}

pub(super) async fn deletions_are_filtered(world: &World) {
    let project = world.fresh_name("project");
    let project_id = world.create_project(&project).await.expect("a project");
    let deletion = world.delete_project(&project).await.expect("a deletion");
    let list = async |filter: DeletionFilter| {
        let page = Page { after: None, limit: 1_000 };
        let found = world.store.deletion.deletion_list(&filter, page).await.expect("a list");
        found.iter().map(|deletion| deletion.id).collect::<Vec<_>>()
    };
    let every = DeletionFilter::default;
    let named = || DeletionFilter { name: Some(project.clone()), ..every() };
    let of_project = Some(project.clone());
    for filter in [
        named(),
        DeletionFilter { name: Some(project_id.to_string()), ..every() },
        DeletionFilter { project: of_project.clone(), ..every() },
        DeletionFilter { own: Some(project_id), project: of_project, ..every() },
        DeletionFilter { state: Some(DeletionState::Done), ..named() },
        DeletionFilter { kind: Some(SubjectKind::Project), ..named() },
        DeletionFilter { requested_by: Some("key:suite".to_owned()), ..named() },
        DeletionFilter { restorable: true, ..named() },
    ] {
        assert_eq!(list(filter.clone()).await, [deletion], "{filter:?}");
    }
    for filter in [
        DeletionFilter { state: Some(DeletionState::Running), ..named() },
        DeletionFilter { kind: Some(SubjectKind::Cloud), ..named() },
        DeletionFilter { requested_by: Some("key:nobody".to_owned()), ..named() },
        DeletionFilter { project: Some("nobody".to_owned()), ..named() },
    ] {
        assert_eq!(list(filter.clone()).await, [], "{filter:?}");
    }
    world.restore(deletion).await.expect("it comes back");
    assert_eq!(list(DeletionFilter { restorable: true, ..named() }).await, []);

    let before = world.store.deletion.deletion_scheduled().await.expect("a count");
    let soon = world.ask_with(std::time::Duration::from_millis(1));
    let scheduled = world.remove::<Project>(&project, &soon).await.expect("a deletion");
    let after = world.store.deletion.deletion_scheduled().await.expect("a count");
    assert_eq!(after.count, before.count + 1);
    let next = after.next.expect("there is one");
    assert!(next.scheduled_for <= world.deletion(scheduled).await.scheduled_for);
    world.cancel(scheduled).await.expect("it can be cancelled");
}

/// One of them has the name, and a second request finds out which.
pub(super) async fn restore_with_create_of_the_same_name(world: &Arc<World>) {
    let named = world.fresh_name("project");
    world.create_project(&named).await.expect("a project");
    let id = world.delete_project(&named).await.expect("a deletion");
    let (a, b, of_create) = (Arc::clone(world), Arc::clone(world), named.clone());
    let (restored, created) =
        at_once(
            async move { a.restore(id).await },
            async move { b.create_project(&of_create).await },
        )
        .await;
    match restored {
        Ok(()) => assert_eq!(refused(created), ErrorKind::NameTaken),
        error => {
            assert_eq!(refused(error), ErrorKind::RestoreConflict);
            created.expect("a project");
            assert_eq!(world.conflicts(id).await[0].code, "name_taken");
        }
    }
    assert!(world.is_live::<Project>(&named).await);
}

/// It comes back once.
pub(super) async fn restore_with_restore(world: &Arc<World>) {
    let (project, _) = world.furnished().await;
    let (declared, id) = world.deleted_in(&project).await;
    let before = world.deletion(id).await.revision;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (first, second) =
        at_once(async move { a.redeclare(id).await }, async move { b.redeclare(id).await }).await;
    first.and(second).expect("both are answered");
    assert_eq!(world.deletion(id).await.revision, before.next(), "it was written once");
    assert_eq!(world.live_in(&project).await, [(declared.resource, 2, Phase::Pending)]);
}

/// The resource is in a live project, or stays deleted; a restored one keeps the project.
pub(super) async fn restore_with_delete_of_its_project(world: &Arc<World>) {
    let (project, _) = world.furnished().await;
    let (_, id) = world.deleted_in(&project).await;
    let (a, b, of_delete) = (Arc::clone(world), Arc::clone(world), project.clone());
    let (restored, deleted) =
        at_once(
            async move { a.redeclare(id).await },
            async move { b.delete_project(&of_delete).await },
        )
        .await;
    match restored {
        Ok(()) => assert_eq!(refused(deleted), ErrorKind::ProjectNotEmpty),
        error => {
            assert_eq!(refused(error), ErrorKind::RestoreConflict);
            deleted.expect("it was empty");
        }
    }
}

/// Whatever comes first, the last word of each is on record.
pub(super) async fn restore_with_declare_of_the_handle(world: &Arc<World>) {
    let (project, _) = world.furnished().await;
    let (declared, id) = world.deleted_in(&project).await;
    let mut key = world.declare_key_in(&project);
    key.handle = world.snapshot(declared.attempt).await.resource.handle.to_string();
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (restored, other) =
        at_once(async move { a.redeclare(id).await }, async move { b.declare_by(&key).await })
            .await;
    match restored {
        Ok(()) => assert_eq!(refused(other), ErrorKind::HandleTaken),
        error => {
            assert_eq!(refused(error), ErrorKind::RestoreConflict);
            other.expect("a declaration");
        }
    }
    assert_eq!(world.live_in(&project).await.len(), 1);
}

/// It is there, or deleted again by another deletion.
pub(super) async fn restore_with_delete(world: &Arc<World>) {
    let named = world.fresh_name("project");
    let project = world.create_project(&named).await.expect("a project").to_string();
    let id = world.delete_project(&named).await.expect("a deletion");
    let (a, b, of_delete) = (Arc::clone(world), Arc::clone(world), project.clone());
    let (restored, deleted) =
        at_once(
            async move { a.restore(id).await },
            async move { b.delete_project(&of_delete).await },
        )
        .await;
    restored.expect("nothing is in its way");
    assert_eq!(world.deletion(id).await.state, DeletionState::Restored);
    match deleted {
        Ok(again) => {
            assert_ne!(again, id);
            assert!(!world.is_live::<Project>(&project).await);
            world.restore(again).await.expect("it comes back once more");
        }
        error => assert_eq!(refused(error), ErrorKind::ProjectNotFound),
    }
    assert!(world.is_live::<Project>(&project).await);
}
