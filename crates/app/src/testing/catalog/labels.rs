//! Labels are rendered into composites: a change of them makes the attempts due at once.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::update;
use slipway_core::catalog::label::{self, LabelDefinition, LabelKey};
use slipway_core::catalog::project::{self, Project, ProjectChange};
use slipway_core::commit::Recheck;
use slipway_core::ids::{LabelDefinitionId, ProvisionedResourceId};
use slipway_core::precondition::Expected;
use slipway_core::text::Labels;

use crate::broker::port::ResourceKey;
use crate::testing::worker::released;
use crate::testing::world::{World, operator};

/// Longer than any test.
const REST: Recheck = Recheck::After(Duration::from_secs(3_600));

fn labels(key: &str, value: &str) -> Labels {
    Labels::parse(BTreeMap::from([(key.to_owned(), value.to_owned())])).expect("valid labels")
}

impl World {
    /// A tick that finds nothing to do.
    async fn rest(&self, attempts: &[ProvisionedResourceId]) {
        for attempt in attempts {
            let claimed = self.claim_now(*attempt).await;
            let release = [released(claimed, REST)];
            self.store.broker.attempt_release(&release).await.expect("a release");
            assert!(!self.is_due(*attempt).await);
        }
    }

    async fn is_due(&self, attempt: ProvisionedResourceId) -> bool {
        let snapshot = self.snapshot(attempt).await;
        snapshot.due_at.is_some_and(|due| due <= snapshot.now)
    }

    async fn relabel_project(&self, project: &str, labels: Labels) {
        let change = ProjectChange { labels: Some(labels), mesh_cidr: None };
        let mut rule =
            |snapshot: &_| project::update(snapshot, &change, Expected::Any, &operator());
        self.store.kind::<Project>().decide(project, &mut rule).await.expect("labels");
    }
}

pub(super) async fn a_relabelled_project_makes_its_resources_due(world: &World) {
    let (project, _) = world.furnished().await;
    let (other, _) = world.furnished().await;
    let first = world.declare_in(&project).await.expect("a declaration").attempt;
    let second = world.declare_in(&project).await.expect("a declaration").attempt;
    let elsewhere = world.declare_in(&other).await.expect("a declaration").attempt;
    world.rest(&[first, second, elsewhere]).await;
    world.relabel_project(&project, labels("team", "a")).await;
    assert!(world.is_due(first).await && world.is_due(second).await);
    assert!(!world.is_due(elsewhere).await, "it is of another project");
    world.rest(&[first, second]).await;
    world.relabel_project(&project, labels("team", "a")).await;
    assert!(!world.is_due(first).await, "nothing changed");
    // A tick that is under way when the labels change is followed by another.
    let claimed = world.claim_now(first).await;
    world.relabel_project(&project, labels("team", "b")).await;
    world.store.broker.attempt_release(&[released(claimed, REST)]).await.expect("a release");
    assert!(world.is_due(first).await, "a release cannot lose a wake");
    world.rest(&[first, second]).await;
}

pub(super) async fn a_changed_definition_makes_what_has_the_label_due(world: &World) {
    let key = world.fresh_name("cost/center");
    let (project, _) = world.furnished().await;
    let (other, _) = world.furnished().await;
    world.relabel_project(&project, labels(&key, "7")).await;
    let far = world.declare_in(&project).await.expect("a declaration").attempt;
    let declared = world.declare_in(&other).await.expect("a declaration");
    let without = world.declare_in(&other).await.expect("a declaration").attempt;
    let near = declared.attempt;
    let own = labels(&key, "8");
    let mut rule = |snapshot: &ResourceSnapshot| {
        let updated = update::relabel(snapshot, Some(own.as_map()), Expected::Any, &operator())?;
        Ok(updated.commit)
    };
    let resource = ResourceKey::Resource(declared.resource);
    world.store.broker.decide(resource, &mut rule).await.expect("labels");

    let all = [far, near, without];
    let definitions = world.store.kind::<LabelDefinition>();
    let new = label::NewLabel {
        id: LabelDefinitionId::new(world.uuid()),
        key: LabelKey::parse("key", &key).expect("a key"),
        description: String::new(),
        propagate: false,
    };
    let due = async |what: &str, expected: bool| {
        for attempt in [far, near] {
            assert_eq!(world.is_due(attempt).await, expected, "{what}");
        }
        assert!(!world.is_due(without).await, "{what}: it has no such label");
        world.rest(&all).await;
    };
    world.rest(&all).await;
    let mut define = |snapshot: &_| label::define(snapshot, &new, &operator());
    definitions.decide(&key, &mut define).await.expect("a label");
    due("no tag comes or goes", false).await;
    let mut update =
        |snapshot: &_| label::update(snapshot, None, Some(true), Expected::Any, &operator());
    definitions.decide(&key, &mut update).await.expect("an update");
    due("a tag comes", true).await;
    world.delete_label(&key).await.expect("a deletion");
    due("a tag goes", true).await;
}
