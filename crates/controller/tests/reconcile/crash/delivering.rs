//! The scenario of Fleet: objects are submitted, offered and reported, a stack goes and comes
//! back, and its generator is deleted and purged. Whatever strikes, the agent ends with what
//! it should have after each of these, and nothing is submitted or deleted twice.

use std::collections::BTreeMap;

use slipway_app::Error;
use slipway_app::access::authorise::Caller;
use slipway_app::access::idempotency;
use slipway_app::deletion::request::DeleteOptions;
use slipway_app::fleet::agents::{self, CreateAgent};
use slipway_app::fleet::generators::{self, CreateGenerator};
use slipway_app::fleet::reports::{self, SubmitReport};
use slipway_app::fleet::stacks::{self, CreateStack};
use slipway_app::fleet::{links, objects, offers};
use slipway_core::ErrorKind;
use slipway_core::access::idempotency::{Key, Request};
use slipway_core::fleet::agent::{AgentChange, AgentStatus};
use slipway_core::ids::{AgentId, DeletionId, GeneratorId, StackId};
use slipway_core::nodes::token::SecretHash;
use slipway_core::precondition::Expected;

use super::plane::Plane;
use super::raw::Raw;
use super::scenarios::Filling;

/// An agent that does at once what it is told.
struct Agent {
    id: AgentId,
    /// What it has deployed of each stack.
    cluster: BTreeMap<StackId, String>,
}

pub(super) async fn delivered(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    let (generator, stack, id) = plane.stack_with_agent(handle).await;
    let mut agent = Agent { id, cluster: BTreeMap::new() };
    plane.arm();
    for version in ["one", "two"] {
        plane.submit(stack, handle, version).await;
        plane.deliver(&mut agent).await;
        assert_eq!(agent.cluster.get(&stack), Some(&content(version)));
    }
    let deletion = plane.delete_stack(stack).await;
    plane.deliver(&mut agent).await;
    assert_eq!(agent.cluster, BTreeMap::new(), "the marker arrives");
    plane.restore(deletion).await;
    plane.deliver(&mut agent).await;
    assert_eq!(agent.cluster.get(&stack), Some(&content("two")));
    let deletion = plane.delete_generator(generator).await;
    plane.deliver(&mut agent).await;
    assert_eq!(agent.cluster, BTreeMap::new());
    let mut raw = Raw::open(&plane.world.url).await;
    let mut verbs: Vec<_> =
        raw.audit(stack.as_uuid()).await.into_iter().map(|entry| entry.verb).collect();
    verbs.sort();
    let expected = ["stack.create", "stack.delete", "stack.delete", "stack.submit", "stack.submit"];
    assert_eq!(verbs, expected, "each once");
    // What is owed to a subscriber withholds a purge.
    plane.disarm();
    plane.relay_all().await;
    plane.purge(deletion).await;
    let world = plane.world;
    let left = stacks::fetch(&world.context, &world.caller, stack, true).await;
    assert_eq!(left.unwrap_err().kind(), ErrorKind::StackNotFound);
    Vec::new()
}

fn content(version: &str) -> String {
    format!("kind: ConfigMap\nmetadata: {{name: {version}}}\n")
}

/// Whoever lost the answer asks again with the same key.
fn request(caller: &Caller, key: &str) -> Request {
    Request {
        caller: caller.name.clone(),
        key: Key::parse(key).unwrap(),
        route: "POST /stacks/{id}/deployment-objects".to_owned(),
        body_hash: SecretHash::of(key.as_bytes()),
    }
}

impl Plane<'_> {
    /// A generator, a stack and an active agent that is to have it.
    async fn stack_with_agent(&self, handle: &str) -> (GeneratorId, StackId, AgentId) {
        let (context, caller) = (&self.world.context, &self.world.caller);
        let named = CreateGenerator { name: handle.to_owned(), ..CreateGenerator::default() };
        let (generator, _) = generators::create(context, caller, named, None).await.unwrap();
        let new = CreateStack { generator, name: handle.to_owned(), description: None };
        let stack = stacks::create(context, caller, new, None).await.unwrap();
        let new = CreateAgent {
            name: handle.to_owned(),
            cluster_name: "berlin".to_owned(),
            ..CreateAgent::default()
        };
        let (agent, _) = agents::create(context, caller, new, None).await.unwrap();
        let active = AgentChange { status: Some(AgentStatus::Active), ..AgentChange::default() };
        agents::update(context, caller, agent, &active, Expected::Any).await.unwrap();
        links::register(context, caller, agent, generator).await.unwrap();
        links::target(context, caller, agent, stack).await.unwrap();
        (generator, stack, agent)
    }

    async fn submit(&mut self, stack: StackId, handle: &str, version: &str) {
        let world = self.world;
        let request = request(&world.caller, &format!("{handle}-{version}"));
        let content = content(version);
        self.request(async |life| {
            let (context, caller) = (&life.context, &world.caller);
            if idempotency::find(context, &request).await?.is_none() {
                let request = Some(request.clone());
                objects::submit(context, caller, stack, (&content, false), request).await?;
            }
            Ok(())
        })
        .await
        .unwrap();
    }

    /// One poll of an agent: it asks until it is answered, carries everything out, and reports
    /// until it is heard.
    async fn deliver(&mut self, agent: &mut Agent) {
        let world = self.world;
        let id = agent.id;
        let offered = self
            .request(async |life| offers::target_state(&life.context, &world.caller, id).await)
            .await
            .unwrap();
        // To an agent an absent stack means "remove it".
        agent.cluster.retain(|stack, _| offered.iter().any(|one| one.stack_id == *stack));
        for object in offered {
            match object.is_marker {
                true => _ = agent.cluster.remove(&object.stack_id),
                false => _ = agent.cluster.insert(object.stack_id, object.content),
            }
            self.request(async |life| {
                let report = SubmitReport {
                    object: object.id,
                    event_type: "DEPLOY".to_owned(),
                    status: "SUCCESS".to_owned(),
                    message: None,
                };
                reports::report(&life.context, &world.caller, id, report).await
            })
            .await
            .unwrap();
        }
    }

    async fn delete_stack(&mut self, id: StackId) -> DeletionId {
        let world = self.world;
        let deleted = self
            .request(async |life| {
                let options = DeleteOptions::default();
                answered(stacks::delete(&life.context, &world.caller, id, options).await)
            })
            .await;
        let found = stacks::fetch(&world.context, &world.caller, id, true).await.unwrap();
        assert_eq!(deleted.unwrap().or(found.deletion_id), found.deletion_id);
        found.deletion_id.unwrap()
    }

    async fn delete_generator(&mut self, id: GeneratorId) -> DeletionId {
        let world = self.world;
        self.request(async |life| {
            let options = DeleteOptions::default();
            answered(generators::delete(&life.context, &world.caller, id, options).await)
        })
        .await
        .unwrap();
        let found = generators::fetch(&world.context, &world.caller, id, true).await;
        found.unwrap().deletion_id.unwrap()
    }
}

/// Whoever lost the answer finds it gone.
fn answered(outcome: Result<DeletionId, Error>) -> Result<Option<DeletionId>, Error> {
    match outcome {
        Ok(id) => Ok(Some(id)),
        Err(error) => match error.kind() {
            ErrorKind::StackNotFound | ErrorKind::GeneratorNotFound => Ok(None),
            _ => Err(error),
        },
    }
}
