//! The scenarios of requests about deletions: a cancel, a purge, and a deletion that a
//! second person approves. Their points are commits alone.

use std::time::Duration;

use slipway_app::access::authorise::Caller;
use slipway_app::access::keys::{self, CreateKey};
use slipway_app::broker::delete;
use slipway_app::deletion::plan;
use slipway_app::deletion::purge::{PurgeOptions, purge};
use slipway_app::deletion::request::{self, DeleteOptions};
use slipway_app::deletion::run::Runner;
use slipway_app::deletion::settings;
use slipway_core::broker::phase::Phase;
use slipway_core::deletion::plan::Composed;
use slipway_core::deletion::record::DeletionState;
use slipway_core::deletion::settings::{SettingScope, Values};
use slipway_core::ids::{DeletionId, PlanId, ResourceId};

use super::plane::Plane;
use super::scenarios::{CAME, Filling, NEVER_CAME, filling};

/// A cancel is one commit: the resource stays as if nobody had asked, or the deletion is
/// scheduled still.
pub(super) async fn cancelled(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    let resource = plane.declare(handle).await;
    plane.until_phase(resource, Phase::Enrolling).await;
    let grace = DeleteOptions { grace: Some(Duration::from_secs(3_600)), ..Default::default() };
    let world = plane.world;
    let id = delete::delete(&world.context, &world.caller, resource, grace).await.unwrap();
    plane.arm();
    plane
        .request(async |life| request::cancel(&life.context, &world.caller, id, None).await)
        .await
        .unwrap();
    plane.disarm();
    let seen = world.get(resource).await;
    assert_eq!(seen.resource.deletion_id, None, "{seen:?}");
    plane.enrol(resource, 1).await;
    let attempt = plane.until_phase(resource, Phase::Ready).await.attempt.id();
    let order = "resource.retry";
    vec![Filling {
        phase: Phase::Ready,
        events: CAME,
        followed: false,
        ..filling(resource, attempt, order)
    }]
}

/// A purge is several commits: that it is the point of no return, its batches, its end.
pub(super) async fn purged(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    let resource = plane.declare(handle).await;
    plane.until_phase(resource, Phase::Enrolling).await;
    plane.delete(resource).await;
    plane.until_gone(resource).await;
    let gone = plane.world.get(resource).await;
    let id = gone.resource.deletion_id.unwrap();
    // What is owed to a subscriber withholds a purge.
    plane.relay_all().await;
    plane.arm();
    plane.purge(id).await;
    let order = "resource.delete";
    vec![Filling { purged: Some(id), ..filling(resource, gone.attempt.id(), order) }]
}

/// Whoever lost an answer asks again: there is one approval, and one deletion under one plan.
pub(super) async fn approved(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    let resource = plane.declare(handle).await;
    let attempt = plane.until_phase(resource, Phase::Enrolling).await.attempt;
    plane.ask_for_approval(resource).await;
    let planner = plane.person(&format!("ada-{handle}")).await;
    let approver = plane.person(&format!("bob-{handle}")).await;
    plane.arm();
    let plan = plane.plan(resource, &planner).await;
    plane.approve(plan, &approver).await;
    plane.delete_by(resource, plan, &planner).await;
    // How it goes, other scenarios show.
    plane.disarm();
    plane.until_gone(resource).await;
    let order = "resource.delete";
    let gone = filling(resource, attempt.id(), order);
    vec![Filling { events: NEVER_CAME, followed: false, approvals: 1, ..gone }]
}

impl Plane<'_> {
    /// Asks for the purge, and runs the loop over deletions until it is over.
    pub(super) async fn purge(&mut self, id: DeletionId) {
        let world = self.world;
        let options = PurgeOptions { force: true, reason: Some("a wish"), ..Default::default() };
        self.request(async |life| purge(&life.context, &world.caller, id, options).await.map(drop))
            .await
            .unwrap();
        self.request(async |life| {
            let runner = Runner::new(life.context.clone(), std::sync::Arc::default());
            loop {
                runner.pass().await?;
                let found = world.context.stores.deletion.deletion_fetch(id).await?;
                if found.is_some_and(|deletion| deletion.state == DeletionState::Purged) {
                    return Ok(());
                }
            }
        })
        .await
        .unwrap();
    }

    /// From now on every deletion in this project needs an approval.
    async fn ask_for_approval(&self, resource: ResourceId) {
        let world = self.world;
        let project = world.get(resource).await.resource.project_id;
        let scope = SettingScope { project: Some(project), kind: None };
        let values = Values { approve_above: Some(0), ..Values::default() };
        settings::set(&world.context, &world.caller, scope, values, None).await.unwrap();
    }

    /// Somebody with a key of their own.
    async fn person(&self, name: &str) -> Caller {
        let world = self.world;
        let input = CreateKey {
            name: name.to_owned(),
            role: "operator".to_owned(),
            owner: Some(name.to_owned()),
            ..CreateKey::default()
        };
        let (id, _) = keys::create(&world.context, &world.caller, input, None).await.unwrap();
        Caller { key_id: Some(id), ..Caller::trusted(name) }
    }

    async fn plan(&mut self, resource: ResourceId, planner: &Caller) -> PlanId {
        self.request(async |life| {
            let composed = Composed::default();
            plan::make(&life.context, planner, resource.into(), false, composed).await
        })
        .await
        .unwrap()
        .id
    }

    async fn approve(&mut self, plan: PlanId, approver: &Caller) {
        self.request(async |life| plan::approve(&life.context, approver, plan, "agreed").await)
            .await
            .unwrap();
    }

    async fn delete_by(&mut self, resource: ResourceId, plan: PlanId, caller: &Caller) {
        self.request(async |life| {
            let options = DeleteOptions { plan: Some(plan), ..DeleteOptions::default() };
            delete::delete(&life.context, caller, resource, options).await
        })
        .await
        .unwrap();
    }
}
