//! The scenario of a roll-out: whoever is struck, the member is changed once, and the
//! roll-out ends.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use slipway_app::broker::declare::{self, Declare};
use slipway_app::catalog::blueprints;
use slipway_app::ports::store::Page;
use slipway_app::rollouts::port::RolloutFilter;
use slipway_app::rollouts::run::Runner;
use slipway_app::rollouts::upgrade::{self, Upgrade};
use slipway_core::ErrorKind;
use slipway_core::broker::phase::Phase;
use slipway_core::catalog::blueprint::SubmittedContent;
use slipway_core::ids::{ResourceId, RolloutId};
use slipway_core::rollouts::record::{MemberState, RolloutState};

use super::plane::Plane;

const BLUEPRINT: &str = "local-node";

pub(super) async fn rolled_out(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    plane.publish_second().await;
    let id = plane.declare_first(handle).await;
    plane.until_phase(id, Phase::Enrolling).await;
    let node = plane.enrol(id, 1).await;
    plane.heartbeat(node).await;
    plane.until_phase(id, Phase::Ready).await;
    plane.arm();
    let rollout = plane.upgrade().await;
    plane.until_rolled_out(rollout).await;
    let seen = plane.world.get(id).await;
    assert_eq!(seen.blueprint.version, "v2");
    let rollouts = &plane.world.context.stores.rollouts;
    let members = rollouts.rollout_members(rollout, None, Page { after: None, limit: 10 }).await;
    let members = members.unwrap();
    assert_eq!(members.len(), 1, "{members:?}");
    assert_eq!(members[0].state, MemberState::Healthy);
    assert_eq!(members[0].before, json!({ "version": "v1" }), "what it had, not what it has");
    id
}

impl Plane<'_> {
    /// The second version, once in a database.
    async fn publish_second(&self) {
        let world = self.world;
        let content = SubmittedContent {
            version: "v2".to_owned(),
            xrd: String::new(),
            composition: String::new(),
            parameters: Some(json!({ "parameters": [] })),
            injection_strategy: "cloud-init-user-data".to_owned(),
            mesh_role: None,
            provider_kinds: vec!["local".to_owned()],
            install_definitions: false,
            surge: false,
        };
        let published =
            blueprints::publish(&world.context, &world.caller, BLUEPRINT, content, None).await;
        published.unwrap();
    }

    async fn declare_first(&mut self, handle: &str) -> ResourceId {
        let world = self.world;
        let input = Declare {
            handle: handle.to_owned(),
            blueprint: BLUEPRINT.to_owned(),
            version: Some("v1".to_owned()),
            parameters: BTreeMap::new(),
            ..Declare::default()
        };
        declare::declare(&world.context, &world.caller, input).await.unwrap()
    }

    /// Whoever lost the answer finds the one that is under way.
    async fn upgrade(&mut self) -> RolloutId {
        let world = self.world;
        let input =
            Upgrade { blueprint: BLUEPRINT.to_owned(), to: "v2".to_owned(), ..Upgrade::default() };
        let started = self
            .request(async |life| upgrade::start(&life.context, &world.caller, &input).await)
            .await;
        match started {
            Ok(id) => id,
            Err(ErrorKind::RolloutUnderWay) => {
                let filter = RolloutFilter {
                    state: Some(RolloutState::Running),
                    ..RolloutFilter::default()
                };
                let page = Page { after: None, limit: 2 };
                let found = world.context.stores.rollouts.rollout_list(&filter, page).await;
                found.unwrap().items[0].id
            }
            Err(kind) => panic!("the upgrade was refused: {kind}"),
        }
    }

    /// Runs both loops until it is done.
    async fn until_rolled_out(&mut self, id: RolloutId) {
        let world = self.world;
        self.request(async |life| {
            let runner = Runner::new(life.context.clone(), std::sync::Arc::default());
            loop {
                runner.pass().await?;
                let found = world.context.stores.rollouts.rollout_fetch(id).await?;
                if found.is_some_and(|rollout| rollout.state == RolloutState::Done) {
                    return Ok(());
                }
                if !life.round().await {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
        })
        .await
        .unwrap();
    }
}
