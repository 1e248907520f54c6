//! Content that differs by agent: each is offered its own rendering, and what cannot be
//! rendered is shown and removes nothing.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::ErrorKind;
use slipway_core::deletion::record::DeletionState;
use slipway_core::fleet::object::KEPT_OBJECTS;
use slipway_core::fleet::progress::{Progress, ProgressState, progress};
use slipway_core::ids::{AgentId, DeploymentObjectId, GeneratorId, StackId, TemplateId};
use slipway_core::precondition::Expected;
use slipway_core::rollouts::record::{RolloutState, Strategy};

use super::client::{Client, admin, refused};
use super::leaving::{batches, now};
use crate::deletion::purge::purge;
use crate::fleet::port::PairsOf;
use crate::fleet::templates::{self, CreateTemplate};
use crate::fleet::{links, objects, stacks, tags};
use crate::ports::templates::{RenderFailure, TemplateRenderer};

/// Fills in `{{ name }}`, and fails on a value `boom`.
#[derive(Debug)]
pub(super) struct Placeholders;

#[async_trait]
impl TemplateRenderer for Placeholders {
    async fn check(&self, _: &str) -> Result<(), RenderFailure> {
        Ok(())
    }

    async fn render(&self, template: &str, parameters: &Value) -> Result<String, RenderFailure> {
        let mut text = template.to_owned();
        for (name, value) in parameters.as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if value == "boom" {
                return Err(RenderFailure::Template("has no filter `boom`".to_owned()));
            }
            text = text.replace(&format!("{{{{ {name} }}}}"), &value);
        }
        Ok(text)
    }
}

struct Differing {
    client: Client,
    generator: GeneratorId,
    stack: StackId,
    template: TemplateId,
}

impl Differing {
    async fn new(client: &Client) -> Self {
        let client = client.with_templates();
        let generator = client.generator().await;
        let stack = client.stack(generator).await;
        let schema = json!({ "required": ["site"], "properties": {
            "site": { "type": "string", "x-agent-annotation": "site" },
            "tier": { "type": "string" },
        } });
        let input = CreateTemplate {
            generator: Some(generator),
            name: client.name("template"),
            content: "kind: ConfigMap\nmetadata: {name: {{ site }}-{{ tier }}}\n".to_owned(),
            parameters_schema: schema.to_string(),
            ..CreateTemplate::default()
        };
        let template = templates::create(&client.context, &admin(), input, None).await;
        Self { generator, stack, template: template.expect("a template"), client }
    }

    async fn submit(&self, tier: &str) -> DeploymentObjectId {
        let parameters = json!({ "tier": tier });
        let of = (self.template, &parameters);
        let made =
            templates::instantiate(&self.client.context, &admin(), self.stack, of, None).await;
        made.expect("an object")
    }

    /// An agent of the stack at this site.
    async fn agent(&self, site: Option<&str>) -> AgentId {
        let agent = self.client.agent_of(self.generator, self.stack).await;
        if let Some(site) = site {
            self.annotate(agent, site).await;
        }
        agent
    }

    async fn annotate(&self, agent: AgentId, site: &str) {
        let context = &self.client.context;
        // It may have none yet.
        let _ = tags::remove_annotation(context, &admin(), agent.into(), "site").await;
        let added = tags::add_annotation(context, &admin(), agent.into(), ("site", site)).await;
        added.expect("an annotation");
    }

    /// The name in the only object that it is offered.
    async fn deployed(&self, agent: AgentId) -> (DeploymentObjectId, String) {
        let offered = self.client.poll(agent).await;
        assert_eq!(offered.len(), 1, "{offered:?}");
        let name = offered[0].content.split("name: ").nth(1).unwrap_or_default();
        (offered[0].id, name.trim_end_matches("}\n").to_owned())
    }

    async fn progress(&self, agent: AgentId) -> Progress {
        let store = &self.client.context.stores.fleet;
        let pairs = store.pair_list(PairsOf::Stack(self.stack), 100).await.expect("pairs");
        let pair = pairs.iter().find(|pair| pair.agent.id == agent).expect("the pair");
        let now = store.offer_read(agent).await.expect("a read").now;
        progress(pair, false, now).expect("something to say")
    }
}

pub(super) async fn each_agent_is_offered_its_own_rendering(client: &Client) {
    let there = Differing::new(client).await;
    let (client, context) = (&there.client, &there.client.context);
    let berlin = there.agent(Some("berlin")).await;
    let bare = there.agent(None).await;
    let base = there.submit("web").await;
    assert!(client.object(base).await.per_agent.is_some());
    let (first, name) = there.deployed(berlin).await;
    assert_eq!(name, "berlin-web");
    assert_ne!(first, base, "nobody is offered the text of the template");
    assert_eq!(there.deployed(berlin).await.0, first, "asked again, the same");
    client.report(berlin, first, "SUCCESS").await.expect("a report about its own");
    assert_eq!(there.progress(berlin).await.state, ProgressState::Current);
    let counted = context.stores.fleet.agent_overview(None, None).await.expect("an overview");
    let of = |id| counted.iter().find(|one| one.agent.id == id).expect("it").pending;
    assert_eq!((of(berlin), of(bare)), (0, 1));

    assert_eq!(client.offered(bare).await, [], "it cannot be rendered");
    let told = there.progress(bare).await;
    assert_eq!(told.state, ProgressState::Failed);
    assert!(told.why.expect("a reason").contains("annotation `site`"));
    there.annotate(bare, "paris").await;
    assert_eq!(there.progress(bare).await.state, ProgressState::NotOffered, "not tried yet");
    assert_eq!(there.deployed(bare).await.1, "paris-web");

    // What does not concern the content makes no new object, another value does.
    tags::add_label(context, &admin(), berlin.into(), "edge").await.expect("a label");
    assert_eq!(there.deployed(berlin).await.0, first);
    there.annotate(berlin, "bonn").await;
    let (second, name) = there.deployed(berlin).await;
    assert_eq!((name.as_str(), second != first), ("bonn-web", true));
    there.annotate(berlin, "boom").await;
    assert_eq!(there.deployed(berlin).await.0, second, "it keeps what it has");
    let told = there.progress(berlin).await;
    assert!(told.why.expect("a reason").contains("no filter"), "{:?}", told.state);
    there.annotate(berlin, "[").await;
    assert_eq!(there.deployed(berlin).await.0, second, "nor is it offered what is no YAML");
    there.annotate(berlin, "bonn").await;
    assert_eq!(there.deployed(berlin).await.1, "bonn-web");

    let preview = async |agent, tier: &str| {
        let parameters = json!({ "tier": tier });
        templates::render(context, &admin(), there.template, &parameters, agent).await
    };
    assert!(preview(Some(berlin), "db").await.expect("a preview").contains("bonn-db"));
    assert_eq!(refused(preview(None, "db").await), ErrorKind::ParameterValuesInvalid);
    let lacking = there.agent(None).await;
    assert_eq!(refused(preview(Some(lacking), "db").await), ErrorKind::TemplateFailed);
    let given = json!({ "site": "rome", "tier": "db" });
    let of = (there.template, &given);
    let plain = templates::instantiate(context, &admin(), there.stack, of, None).await;
    let plain = plain.expect("an object");
    assert_eq!(there.deployed(lacking).await, (plain, "rome-db".to_owned()), "given for all");
    assert_eq!(there.deployed(berlin).await.0, plain);
}

/// Withdrawn, rolled back, taken away, deleted, restored, pruned and purged as any other.
pub(super) async fn renderings_go_and_come_back_with_their_object(client: &Client) {
    let there = Differing::new(client).await;
    let (client, context) = (&there.client, &there.client.context);
    let agent = there.agent(Some("berlin")).await;
    let first = there.submit("web").await;
    let (rendered, _) = there.deployed(agent).await;
    let second = there.submit("db").await;
    assert_eq!(there.deployed(agent).await.1, "berlin-db");
    objects::withdraw(context, &admin(), second).await.expect("it goes");
    assert_eq!(there.deployed(agent).await.1, "berlin-web", "what remains follows it");
    let sequence = client.object(first).await.sequence;
    there.submit("db").await;
    objects::roll_back(context, &admin(), there.stack, sequence).await.expect("the way back");
    assert_eq!(there.deployed(agent).await.1, "berlin-web");
    assert_eq!(client.object(rendered).await.agent_id, Some(agent));

    links::untarget(context, &admin(), agent, there.stack).await.expect("no target");
    let owed = client.poll(agent).await;
    assert!(owed.len() == 1 && owed[0].is_marker, "{owed:?}");
    links::target(context, &admin(), agent, there.stack).await.expect("a target");
    assert_eq!(there.deployed(agent).await.1, "berlin-web", "it is not rendered again");

    for _ in 0..KEPT_OBJECTS + 2 {
        there.submit("web").await;
    }
    let (held, _) = there.deployed(agent).await;
    let store = &context.stores.fleet;
    for _ in 0..2 {
        store.object_prune(KEPT_OBJECTS, None, 1_000).await.expect("a batch");
    }
    let gone = store.object_fetch(rendered).await.expect("a read");
    assert!(gone.is_none(), "what it was rendered from is gone");
    assert_eq!(there.deployed(agent).await.0, held);

    let deletion = client.delete_stack(there.stack).await.expect("a deletion");
    assert!(client.poll(agent).await[0].is_marker);
    client.restore(deletion).await.expect("it comes back");
    let (restored, name) = there.deployed(agent).await;
    assert_eq!(name, "berlin-web");
    let deletion = client.delete_stack(there.stack).await.expect("a deletion");
    purge(context, &admin(), deletion, now("a leaked value")).await.expect("it begins");
    let left = client.object(restored).await;
    assert!(left.erased_at.is_some() && !left.content.contains("berlin"), "{left:?}");
    for marker in client.poll(agent).await {
        client.report(agent, marker.id, "SUCCESS").await.expect("it is removed");
    }
    assert_eq!(batches(client, deletion).await, DeletionState::Purged);
}

/// An agent for which the object cannot be rendered stops a roll-out as one that fails does.
pub(super) async fn a_rollout_stops_where_nothing_can_be_rendered(client: &Client) {
    let there = Differing::new(client).await;
    let (client, context) = (&there.client, &there.client.context);
    let good = there.agent(Some("berlin")).await;
    let bad = there.agent(None).await;
    let last = there.agent(Some("rome")).await;
    let plain = client.submit(there.stack, "one").await.expect("an object");
    for agent in [good, bad, last] {
        assert_eq!(client.offered(agent).await, [plain]);
        client.report(agent, plain, "SUCCESS").await.expect("a report");
    }
    let one_by_one = Strategy { canary: 1, parallel: 1, ..Strategy::default() };
    stacks::set_strategy(context, &admin(), there.stack, Some(one_by_one), Expected::Any)
        .await
        .expect("a strategy");
    there.submit("web").await;
    client.pass().await;
    let (own, name) = there.deployed(good).await;
    assert_eq!(name, "berlin-web");
    assert_eq!(client.offered(last).await, [plain], "not its turn");
    client.report(good, own, "SUCCESS").await.expect("a report");
    for _ in 0..2 {
        client.pass().await;
        assert_eq!(client.offered(bad).await, [plain], "it keeps what it has");
    }
    client.pass().await;
    let paused = &client.rollouts(there.stack).await[0];
    assert_eq!(paused.state, RolloutState::Paused, "{paused:?}");
    assert!(paused.message.as_deref().unwrap_or_default().contains("site"), "{paused:?}");
    assert_eq!(client.offered(last).await, [plain]);
}
