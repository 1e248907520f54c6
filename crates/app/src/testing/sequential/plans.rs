//! Plans: what a deletion would take away, and deletions that are held to it.

use slipway_core::blocker::Deadlines;
use slipway_core::broker::delete;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint::Blueprint;
use slipway_core::catalog::project::Project;
use slipway_core::deletion::door::{Ask, Defaults, DoorInput, Doored, Reads};
use slipway_core::deletion::plan::{
    Circumstances, Composed, LIFETIME, Plan, StepAction, UNUSED_MAX,
};
use slipway_core::deletion::protection;
use slipway_core::deletion::record::DeletionState;
use slipway_core::deletion::request;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{PlanId, ResourceId};
use slipway_core::operations::control::Mode;
use slipway_core::subject::{Subject, SubjectKind};
use slipway_core::text::Reason;

use crate::access::port::Owned;
use crate::catalog::port::BlueprintKey;
use crate::deletion::request::{DeletableKind, subject};
use crate::kind::StoredKind;
use crate::ports::store::Error;
use crate::testing::world::{BLUEPRINT, World, operator, refused};

impl World {
    fn circumstances(&self, cascade: bool) -> Circumstances {
        Circumstances {
            plan_id: PlanId::new(self.uuid()),
            ask: Ask { cascade, ..self.ask() },
            mode: Mode::Acting,
            deadlines: Deadlines::default(),
            composed: Composed::default(),
        }
    }

    /// Plans the deletion of a row, and gives the plan away before it is stored.
    pub(super) async fn plan_row<K: DeletableKind>(
        &self,
        key: &<K as StoredKind>::Key,
        cascade: bool,
        change: impl Fn(&mut Plan) + Send + Sync,
    ) -> Result<Plan, Error> {
        let circumstances = self.circumstances(cascade);
        let mut made = None;
        let mut rule = |snapshot: &Doored<_>| {
            let door = &snapshot.door;
            let mut plan = request::plan::<K>(&snapshot.of, door, &circumstances, &operator())?;
            change(&mut plan);
            Ok(made.insert(plan).clone().stored())
        };
        let store = self.store.kind::<K>();
        store.decide_deletion(key, subject::<K>, reads(cascade), &mut rule).await?;
        Ok(made.expect("a plan"))
    }

    pub(in crate::testing) async fn plan_project(&self, project: &str) -> Plan {
        self.plan_row::<Project>(project, true, |_| {}).await.expect("a plan")
    }

    async fn plan_resource(&self, id: ResourceId) -> Plan {
        let circumstances = self.circumstances(false);
        let mut made = None;
        let mut rule = |snapshot: &Doored<ResourceSnapshot>| {
            let plan = delete::plan(&snapshot.of, &snapshot.door, &circumstances, &operator())?;
            Ok(made.insert(plan).clone().stored())
        };
        let planned = self.store.broker.decide_deletion(id, reads(false), &mut rule).await;
        planned.expect("a plan is stored");
        made.expect("a plan")
    }

    /// The request of a cascade that names this plan.
    pub(in crate::testing) fn ask_by(&self, plan: &Plan) -> Ask {
        Ask { plan: Some(plan.id), cascade: plan.cascade, ..self.ask() }
    }

    async fn stored(&self, id: PlanId) -> Option<Plan> {
        self.store.deletion.plan_fetch(id).await.expect("a fetch")
    }
}

fn reads(cascade: bool) -> DoorInput {
    DoorInput { reads: Reads::Everything { cascade }, ..Defaults::default().into() }
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Refusal {
    match outcome {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// It has everything that goes, in order, and becomes one deletion, however often it is
/// used.
pub(super) async fn a_plan_shows_what_goes_and_becomes_one_deletion(world: &World) {
    let (project, _) = world.furnished().await;
    let first = world.declare_in(&project).await.expect("a declaration");
    world.declare_in(&project).await.expect("a declaration");
    let alone = world.plan_row::<Project>(&project, false, |_| {}).await.expect("a plan");
    let codes: Vec<_> = alone.shown.refusals.iter().map(|one| one.code.as_str()).collect();
    assert_eq!(codes, ["project_not_empty"]);

    let plan = world.plan_project(&project).await;
    assert_eq!(world.stored(plan.id).await.as_ref(), Some(&plan), "it is read as it was written");
    let steps: Vec<_> =
        plan.shown.steps.iter().map(|step| (step.action, step.kind.as_str(), step.count)).collect();
    let expected = [
        (StepAction::DeleteComposites, "composite", 2),
        (StepAction::MarkDeleted, "resource", 2),
        (StepAction::MarkDeleted, "project", 1),
    ];
    assert_eq!(steps, expected);
    assert_eq!(plan.shown.steps[1].groups[0].blueprint, BLUEPRINT);
    assert!(plan.shown.refusals.is_empty(), "{:?}", plan.shown.refusals);
    assert_eq!((plan.shown.resources, plan.shown.limit_seconds), (2, 30 * 60));
    assert_eq!(plan.expires_at, plan.planned_at.plus(LIFETIME));
    let owner = world.store.access.project_of(Owned::Plan(plan.id)).await.expect("an owner");
    assert_eq!(owner, plan.project_id);

    let ask = world.ask_by(&plan);
    let id = world.remove::<Project>(&project, &ask).await.expect("a deletion");
    assert_eq!(world.deletion(id).await.state, DeletionState::Running);
    assert_eq!(world.stored(plan.id).await.expect("it is kept").used_by, Some(id));
    let again = world.remove::<Project>(&project, &world.ask_by(&plan)).await;
    assert_eq!(again.expect("the same deletion"), id);
    let late = world.plan_project(&project).await;
    assert_eq!(late.shown.under_way, Some(id));
    assert!(late.shown.refusals.is_empty(), "the deletion that is under way answers");

    let of_member = world.ask_by(&plan);
    let of_member = Ask { cascade: false, ..of_member };
    let other = refusal(world.delete_as(first.resource, &of_member).await);
    assert_eq!((other.kind, other.field.as_deref()), (ErrorKind::PlanMismatch, Some("plan")));
}

/// A resource is planned with its node, and used again after its deletion is done it
/// answers that one.
pub(super) async fn a_resource_is_planned_with_its_node(world: &World) {
    let (declared, node) = world.ready().await;
    let plan = world.plan_resource(declared.resource).await;
    let actions: Vec<_> = plan.shown.steps.iter().map(|step| step.action).collect();
    use StepAction::{DeleteComposites, DrainNodes, MarkDeleted};
    assert_eq!(actions, [DrainNodes, DeleteComposites, MarkDeleted]);
    let members = plan.members.parse().expect("members");
    assert_eq!(members.len(), 1);
    assert_eq!((members[0].attempt, &members[0].nodes[..]), (Some(1), &[node.as_uuid()][..]));
    assert_eq!(plan.shown.limit_seconds, 40 * 60);

    let cascade = Ask { cascade: true, ..world.ask_by(&plan) };
    let other = refusal(world.delete_as(declared.resource, &cascade).await);
    assert_eq!((other.kind, other.field.as_deref()), (ErrorKind::PlanMismatch, Some("cascade")));
    let id = world.delete_as(declared.resource, &world.ask_by(&plan)).await.expect("a deletion");
    world.cancel(id).await.expect_err("it has no grace");
    assert_eq!(
        world.delete_as(declared.resource, &world.ask_by(&plan)).await.expect("the same"),
        id
    );
}

/// A blueprint takes its versions with it.
pub(super) async fn a_plan_of_a_blueprint_names_its_versions_and_users(world: &World) {
    let (project, _) = world.furnished().await;
    world.declare_in(&project).await.expect("a declaration");
    let key = BlueprintKey { blueprint: BLUEPRINT.to_owned(), version: None };
    let plan = world.plan_row::<Blueprint>(&key, false, |_| {}).await.expect("a plan");
    let kinds: Vec<_> = plan.shown.steps.iter().map(|step| step.kind.as_str()).collect();
    assert_eq!(kinds, ["blueprint_version", "blueprint"]);
    assert_eq!(plan.shown.refusals[0].code, "blueprint_in_use");
    let refused = refusal(world.remove::<Blueprint>(&key, &world.ask_by(&plan)).await);
    assert_eq!(plan.shown.refusals[0].message, refused.message, "as the deletion says it");
}

/// If what would go moved, the difference is named; a plan is no way around protection.
pub(super) async fn a_moved_world_is_refused_with_the_difference(world: &World) {
    let (project, _) = world.furnished().await;
    let first = world.declare_in(&project).await.expect("a declaration");
    let plan = world.plan_project(&project).await;
    let by_plan =
        async |plan: &Plan| refusal(world.remove::<Project>(&project, &world.ask_by(plan)).await);

    world.declare_in(&project).await.expect("a declaration");
    let stale = by_plan(&plan).await;
    assert_eq!(stale.kind, ErrorKind::PlanStale, "{stale}");
    let details = stale.details.expect("the difference");
    assert_eq!((&details["added_count"], &details["removed_count"]), (&1.into(), &0.into()));
    assert_eq!(world.stored(plan.id).await.expect("the plan").used_by, None);

    let plan = world.plan_project(&project).await;
    world.protect(first.resource.into()).await.expect("it can be protected");
    let details = by_plan(&plan).await.details.expect("the difference");
    assert_eq!(details["changed"][0]["changed"], serde_json::json!(["protection"]));
    let plan = world.plan_project(&project).await;
    assert_eq!(plan.shown.refusals[0].code, "protected");
    assert_eq!(plan.shown.protected_count, 1);
    assert_eq!(by_plan(&plan).await.kind, ErrorKind::Protected);
    let why = Reason::parse("the suite wants it").expect("a valid reason");
    let subject = Subject::from(first.resource);
    let mut lift = |snapshot: &_| protection::lift(snapshot, LIFETIME, &why, &operator());
    world.store.deletion.protection_decide(subject, &mut lift).await.expect("it is lifted");
    let mut unprotect = |snapshot: &_| Ok(protection::unprotect(snapshot, &why, &operator()));
    let lifted = world.plan_project(&project).await;
    assert_eq!(lifted.digest, plan.digest, "that it is lifted is no change");
    world.store.deletion.protection_decide(subject, &mut unprotect).await.expect("it goes");
    assert_eq!(by_plan(&lifted).await.kind, ErrorKind::PlanStale);

    let plan = world.plan_project(&project).await;
    world.delete(first.resource).await.expect("a deletion");
    let same = world.plan_project(&project).await;
    assert_eq!(same.digest, plan.digest, "a phase is no change");
    world.drive(first.attempt, slipway_core::Phase::Deleted).await;
    let details = by_plan(&plan).await.details.expect("the difference");
    assert_eq!(details["removed"][0]["id"], serde_json::json!(first.resource));
    let kind = SubjectKind::Resource.as_str();
    assert_eq!(details["removed"][0]["kind"], serde_json::json!(kind));
    let plan = world.plan_project(&project).await;
    world.remove::<Project>(&project, &world.ask_by(&plan)).await.expect("it goes");
}

/// A plan ends: after an hour, with its deletion, or when the same caller made many others.
pub(super) async fn a_plan_is_used_once_and_expires(world: &World) {
    let (project, _) = world.furnished().await;
    let by_plan = async |id: PlanId| {
        let ask = Ask { plan: Some(id), cascade: true, ..world.ask() };
        world.remove::<Project>(&project, &ask).await
    };
    assert_eq!(refused(by_plan(PlanId::new(world.uuid())).await), ErrorKind::PlanNotFound);
    let over = |plan: &mut Plan| plan.expires_at = plan.planned_at;
    let expired = world.plan_row::<Project>(&project, true, over).await.expect("a plan");
    assert_eq!(refused(by_plan(expired.id).await), ErrorKind::PlanExpired);

    let declared = world.declare_in(&project).await.expect("a declaration");
    let plan = world.plan_resource(declared.resource).await;
    let with_grace = Ask { grace: Some(LIFETIME), ..world.ask_by(&plan) };
    let id = world.delete_as(declared.resource, &with_grace).await.expect("a deletion");
    world.cancel(id).await.expect("it can be cancelled");
    let late = world.delete_as(declared.resource, &world.ask_by(&plan)).await;
    assert_eq!(refused(late), ErrorKind::PlanUsed);
    world.delete(declared.resource).await.expect("a deletion");
    let late = world.delete_as(declared.resource, &world.ask_by(&plan)).await;
    assert_eq!(refused(late), ErrorKind::PlanUsed, "the deletion is another one");

    let mut made = Vec::new();
    for _ in 0..UNUSED_MAX + 1 {
        made.push(world.plan_project(&project).await.id);
    }
    assert!(world.stored(made[0]).await.is_none(), "the oldest was replaced");
    assert!(world.stored(made[1]).await.is_some());
    assert!(world.stored(plan.id).await.is_some(), "a plan that was used stays");

    let expired = world.plan_row::<Project>(&project, true, over).await.expect("a plan");
    assert!(world.store.deletion.plan_prune(100).await.expect("a prune") >= 1);
    assert!(world.stored(expired.id).await.is_none());
    assert_eq!(world.store.deletion.plan_prune(100).await.expect("a prune"), 0);
    assert!(world.stored(plan.id).await.is_some(), "it did not expire");
}
