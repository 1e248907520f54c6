//! Somebody who uses Fleet, in as few words as a test wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slipway_core::ErrorKind;
use slipway_core::fleet::agent::{AgentChange, AgentStatus};
use slipway_core::fleet::object::DeploymentObject;
use slipway_core::fleet::offer;
use slipway_core::ids::{AgentId, DeletionId, DeploymentObjectId, GeneratorId, StackId};
use slipway_core::precondition::Expected;

use super::differing::Placeholders;
use crate::access::authorise::Caller;
use crate::deletion::request::DeleteOptions;
use crate::deletion::restore::{self, RestoreOptions, Restored};
use crate::fleet::agents::{self, CreateAgent};
use crate::fleet::generators::{self, CreateGenerator};
use crate::fleet::reports::{self, SubmitReport};
use crate::fleet::stacks::{self, CreateStack};
use crate::fleet::{links, objects, offers};
use crate::testing::files::context;
use crate::testing::world::World;
use crate::{Context, Error};

#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) context: Context,
    names: Arc<AtomicU64>,
}

pub(super) fn admin() -> Caller {
    Caller::trusted("fleet")
}

/// A ConfigMap.
pub(super) fn content(value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {value}}}\n")
}

/// The kind of a refusal; panics on any other outcome.
pub(super) fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> ErrorKind {
    outcome.expect_err("a refusal").kind()
}

impl Client {
    pub(super) fn new(world: &World) -> Self {
        Self { context: context(world.store.clone()), names: Arc::default() }
    }

    /// The same, with templates.
    pub(super) fn with_templates(&self) -> Self {
        let context = Context { templates: Arc::new(Placeholders), ..self.context.clone() };
        Self { context, ..self.clone() }
    }

    pub(super) fn name(&self, what: &str) -> String {
        format!("{what} {}", self.names.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) async fn generator(&self) -> GeneratorId {
        let input = CreateGenerator { name: self.name("gen"), ..CreateGenerator::default() };
        generators::create(&self.context, &admin(), input, None).await.expect("a generator").0
    }

    pub(super) async fn stack_called(
        &self,
        generator: GeneratorId,
        name: &str,
    ) -> Result<StackId, Error> {
        let input = CreateStack { generator, name: name.to_owned(), description: None };
        stacks::create(&self.context, &admin(), input, None).await
    }

    pub(super) async fn stack(&self, generator: GeneratorId) -> StackId {
        self.stack_called(generator, &self.name("stack")).await.expect("a stack")
    }

    /// A stack with one object.
    pub(super) async fn deployed(&self, generator: GeneratorId) -> (StackId, DeploymentObjectId) {
        let stack = self.stack(generator).await;
        (stack, self.submit(stack, "one").await.expect("an object"))
    }

    pub(super) async fn submit(
        &self,
        stack: StackId,
        value: &str,
    ) -> Result<DeploymentObjectId, Error> {
        let content = content(value);
        objects::submit(&self.context, &admin(), stack, (&content, false), None).await
    }

    pub(super) async fn object(&self, id: DeploymentObjectId) -> DeploymentObject {
        objects::fetch(&self.context, &admin(), id).await.expect("an object")
    }

    /// An active agent.
    pub(super) async fn agent(&self) -> AgentId {
        let input = CreateAgent {
            name: self.name("agent"),
            cluster_name: "berlin".to_owned(),
            ..CreateAgent::default()
        };
        let (id, _) = agents::create(&self.context, &admin(), input, None).await.expect("an agent");
        let change = AgentChange { status: Some(AgentStatus::Active), ..AgentChange::default() };
        agents::update(&self.context, &admin(), id, &change, Expected::Any).await.expect("active");
        id
    }

    /// An agent that is registered with the generator and has the stack as its target.
    pub(super) async fn agent_of(&self, generator: GeneratorId, stack: StackId) -> AgentId {
        let agent = self.agent().await;
        links::register(&self.context, &admin(), agent, generator).await.expect("consent");
        links::target(&self.context, &admin(), agent, stack).await.expect("a target");
        agent
    }

    /// An offer that is answered from what the agent holds is the one that the facts of its
    /// stacks give.
    pub(super) async fn check_held(&self, agent: AgentId) {
        let store = &self.context.stores.fleet;
        let held = store.offer_held(agent).await.expect("what it holds");
        let Some(mut held) = held.unchanged() else { return };
        let read = store.offer_read(agent).await.expect("the facts");
        let unchanged = offer::unchanged(&read).expect("an offer");
        let mut unchanged = unchanged.expect("an offer without a write");
        held.sort_unstable();
        unchanged.sort_unstable();
        assert_eq!(held, unchanged, "{read:#?}");
    }

    pub(super) async fn poll(&self, agent: AgentId) -> Vec<DeploymentObject> {
        self.check_held(agent).await;
        offers::target_state(&self.context, &admin(), agent).await.expect("an offer")
    }

    /// The ids of an offer.
    pub(super) async fn offered(&self, agent: AgentId) -> Vec<DeploymentObjectId> {
        self.poll(agent).await.iter().map(|object| object.id).collect()
    }

    pub(super) async fn report(
        &self,
        agent: AgentId,
        object: DeploymentObjectId,
        status: &str,
    ) -> Result<slipway_core::fleet::report::Report, Error> {
        let input = SubmitReport {
            object,
            event_type: "DEPLOY".to_owned(),
            status: status.to_owned(),
            message: None,
        };
        reports::report(&self.context, &admin(), agent, input).await
    }

    pub(super) async fn delete_stack(&self, id: StackId) -> Result<DeletionId, Error> {
        stacks::delete(&self.context, &admin(), id, DeleteOptions::default()).await
    }

    pub(super) async fn delete_generator(&self, id: GeneratorId) -> Result<DeletionId, Error> {
        generators::delete(&self.context, &admin(), id, DeleteOptions::default()).await
    }

    pub(super) async fn restore(&self, id: DeletionId) -> Result<Restored, Error> {
        restore::restore(&self.context, &admin(), id, RestoreOptions::default()).await
    }

    pub(super) async fn is_live(&self, stack: StackId) -> bool {
        stacks::fetch(&self.context, &admin(), stack, false).await.is_ok()
    }
}
