//! Content that differs by agent: parameters of a template whose values are labels and
//! annotations of the agent.
//!
//! Submitted from such a template, an object of a stack has the text of the template and what
//! was given, and is offered to nobody. Each agent is offered its own *rendering* of it: an
//! object for this agent alone, made when the agent asks, and made anew when its labels or
//! annotations change. What cannot be rendered is shown, and the agent keeps what it has.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::commit::Commit;
use crate::error::Refusal;
use crate::fleet::FleetWrite;
use crate::fleet::agent::Agent;
use crate::fleet::content::Content;
use crate::fleet::object::{DeploymentObject, SECRET_REFUSED, derived};
use crate::fleet::stack::next_sequence;
use crate::fleet::template::TemplateText;
use crate::ids::{AgentId, DeploymentObjectId, StackId};
use crate::kind::existing;
use crate::precondition::Expected;
use crate::time::Timestamp;

/// Names the annotation of the agent that a parameter has the value of.
pub const ANNOTATION: &str = "x-agent-annotation";
/// Names a label, and the parameter says whether the agent has it; or `true`, and the parameter
/// is the one of its `enum` that is a label of the agent.
pub const LABEL: &str = "x-agent-label";

/// The longest problem that is kept, in characters.
const PROBLEM_MAX: usize = 1_000;

/// What an object of a stack is rendered from, beside its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerAgent {
    /// Name and version of the template.
    pub template: String,
    /// What was given; the same for every agent.
    pub parameters: Map<String, Value>,
    pub schema: Value,
}

/// The labels of an agent, and its annotations as keys with values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentTags {
    pub labels: Vec<String>,
    pub annotations: Vec<(String, String)>,
}

enum Source<'a> {
    Annotation(&'a str),
    HasLabel(&'a str),
    AmongLabels(Vec<&'a str>),
}

/// The parameters of a schema that agents give, or what is wrong with one.
fn sources(schema: &Value) -> Result<Vec<(&str, Source<'_>)>, String> {
    let mut found = Vec::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let source = match (property.get(ANNOTATION), property.get(LABEL)) {
            (None, None) => continue,
            (Some(Value::String(key)), None) if !key.is_empty() => Source::Annotation(key),
            (None, Some(Value::String(label))) if !label.is_empty() => Source::HasLabel(label),
            (None, Some(Value::Bool(true))) => {
                let options = property["enum"].as_array().into_iter().flatten();
                let options: Vec<_> = options.filter_map(Value::as_str).collect();
                if options.is_empty() {
                    return Err(format!("has `{LABEL}: true` at `{name}` without an `enum`"));
                }
                Source::AmongLabels(options)
            }
            (Some(_), Some(_)) => {
                return Err(format!("has both `{ANNOTATION}` and `{LABEL}` at `{name}`"));
            }
            (Some(_), None) => {
                return Err(format!("must name an annotation by `{ANNOTATION}` at `{name}`"));
            }
            (None, Some(_)) => {
                return Err(format!("must name a label by `{LABEL}` at `{name}`, or be true"));
            }
        };
        found.push((name.as_str(), source));
    }
    if keywords(schema) != found.len() {
        return Err(format!("has `{ANNOTATION}` or `{LABEL}` elsewhere than at a parameter"));
    }
    Ok(found)
}

/// How many of our keywords the schema has, at any depth.
fn keywords(schema: &Value) -> usize {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| usize::from(name == ANNOTATION || name == LABEL) + keywords(value))
            .sum(),
        Value::Array(items) => items.iter().map(keywords).sum(),
        _ => 0,
    }
}

/// Refuses a schema whose keywords for agents say nothing useful.
pub(crate) fn check(schema: &Value) -> Result<(), String> {
    sources(schema).map(|_| ())
}

impl PerAgent {
    /// What has to be known of an agent beside these parameters; `None` if nothing has to.
    /// Refuses parameters that fit no agent.
    pub fn of(
        text: &TemplateText,
        template: String,
        parameters: &Value,
    ) -> Result<Option<Self>, Refusal> {
        let schema: Value = serde_json::from_str(&text.parameters_schema)
            .map_err(|_| Refusal::invalid("parameters_schema", "is no JSON"))?;
        let sources =
            sources(&schema).map_err(|problem| Refusal::invalid("parameters_schema", problem))?;
        let given = parameters.as_object();
        let is_open = |name: &str| given.is_none_or(|given| !given.contains_key(name));
        let open: Vec<_> =
            sources.iter().map(|(name, _)| *name).filter(|name| is_open(name)).collect();
        if open.is_empty() {
            text.check(parameters)?;
            return Ok(None);
        }
        // What agents give is missing until one asks.
        let mut partial = schema.clone();
        if let Some(Value::Array(required)) = partial.get_mut("required") {
            required.retain(|name| name.as_str().is_none_or(|name| !open.contains(&name)));
        }
        TemplateText { content: String::new(), parameters_schema: partial.to_string() }
            .check(parameters)?;
        let parameters = given.cloned().unwrap_or_default();
        Ok(Some(Self { template, parameters, schema }))
    }

    /// The parameters of one agent, or why it has none.
    pub fn values(&self, tags: &AgentTags) -> Result<Value, String> {
        let mut values = self.parameters.clone();
        for (name, source) in sources(&self.schema)? {
            if values.contains_key(name) {
                continue;
            }
            let property = &self.schema["properties"][name];
            let value = match source {
                Source::HasLabel(label) => Some(Value::Bool(has_label(tags, label))),
                Source::AmongLabels(options) => {
                    let mut found = options.into_iter().filter(|one| has_label(tags, one));
                    match (found.next(), found.next()) {
                        (Some(one), Some(other)) => {
                            return Err(format!(
                                "parameter `{name}` is one label of the agent, which has both `{one}` and `{other}`"
                            ));
                        }
                        (one, _) => one.map(Value::from),
                    }
                }
                Source::Annotation(key) => {
                    let found = tags.annotations.iter().find(|(other, _)| other == key);
                    found.map(|(_, text)| typed(name, key, text, property)).transpose()?
                }
            };
            match value.or_else(|| property.get("default").cloned()) {
                Some(value) => _ = values.insert(name.to_owned(), value),
                None if is_required(&self.schema, name) => return Err(lacking(name, property)),
                None => {}
            }
        }
        let values = Value::Object(values);
        let schema = self.schema.to_string();
        let text = TemplateText { content: String::new(), parameters_schema: schema };
        text.check(&values).map_err(|refusal| refusal.message)?;
        Ok(values)
    }
}

fn has_label(tags: &AgentTags, label: &str) -> bool {
    tags.labels.iter().any(|other| other == label)
}

fn is_required(schema: &Value, name: &str) -> bool {
    let mut required = schema["required"].as_array().into_iter().flatten();
    required.any(|one| one.as_str() == Some(name))
}

fn lacking(name: &str, property: &Value) -> String {
    match property[ANNOTATION].as_str() {
        Some(key) => format!(
            "parameter `{name}` is the annotation `{key}` of the agent, which has none; `slipway agent annotate` adds it"
        ),
        None => format!(
            "parameter `{name}` is one of its values that is a label of the agent, which has none of them; `slipway agent label` adds it"
        ),
    }
}

/// An annotation is a text; a parameter of another type is written as JSON.
fn typed(name: &str, key: &str, text: &str, property: &Value) -> Result<Value, String> {
    let is_text = match property.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|one| one == "string"),
        Some(one) => one == "string",
    };
    if is_text {
        return Ok(Value::from(text));
    }
    serde_json::from_str(text).map_err(|_| {
        format!(
            "parameter `{name}` is the annotation `{key}` of the agent, whose value is no {}",
            property["type"].as_str().unwrap_or("JSON")
        )
    })
}

/// How the newest object of a stack becomes one for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rendered {
    /// It is the same for every agent.
    NotNeeded,
    /// It has to be rendered, also because the agent has other labels or annotations now.
    Missing,
    /// It cannot be rendered for this agent as it is.
    Failed,
    As(DeploymentObjectId),
}

/// What came of rendering one object for one agent.
#[derive(Debug, Clone)]
pub struct Attempted {
    pub base: DeploymentObjectId,
    pub made: Result<Content, String>,
}

/// An agent, its row locked, and objects that are rendered for it.
#[derive(Debug, Clone)]
pub struct RenderSnapshot {
    pub now: Timestamp,
    pub agent: Option<Agent>,
    /// Counts the changes of its labels and annotations.
    pub tags: i64,
    pub bases: Vec<Base>,
}

/// An object of a live stack that each agent has its own rendering of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    pub id: DeploymentObjectId,
    pub stack_id: StackId,
    pub last_sequence: i64,
    /// Whether its generator lets Secrets with values in.
    pub accepts_secrets: bool,
    /// What this agent has of it, with its checksum.
    pub rendered: Option<(DeploymentObjectId, String)>,
}

/// The row of a rendering.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendering {
    pub base: DeploymentObjectId,
    pub agent_id: AgentId,
    pub tags: i64,
    pub object_id: Option<DeploymentObjectId>,
    pub problem: Option<String>,
    /// The object, unless it is there already.
    pub object: Option<DeploymentObject>,
}

/// Records renderings that were made with the labels and annotations at `tags`. If those have
/// changed since, nothing is recorded: whoever asks next renders anew.
pub fn record(
    snapshot: &RenderSnapshot,
    tags: i64,
    attempted: &[Attempted],
) -> Result<Commit, Refusal> {
    let agent_id = existing(&snapshot.agent, Expected::Any)?.id;
    if snapshot.tags != tags {
        return Ok(Commit::default());
    }
    let rendering = |one: &Attempted| {
        let base = snapshot.bases.iter().find(|base| base.id == one.base)?;
        let made = match &one.made {
            Ok(content) if content.has_secret() && !base.accepts_secrets => {
                Err(SECRET_REFUSED.to_owned())
            }
            made => made.clone(),
        };
        let row = Rendering {
            base: base.id,
            agent_id,
            tags,
            object_id: None,
            problem: None,
            object: None,
        };
        Some(match made {
            Err(problem) => {
                Rendering { problem: Some(problem.chars().take(PROBLEM_MAX).collect()), ..row }
            }
            // The same content stays the same object, which nobody has to deploy again.
            Ok(content) => match &base.rendered {
                Some((id, checksum)) if *checksum == content.checksum() => {
                    Rendering { object_id: Some(*id), ..row }
                }
                _ => {
                    let object = object(base, agent_id, &content, snapshot.now);
                    Rendering { object_id: Some(object.id), object: Some(object), ..row }
                }
            },
        })
    };
    let renderings: Vec<_> = attempted.iter().filter_map(rendering).collect();
    let mut commit = Commit::default();
    if !renderings.is_empty() {
        commit.writes.push(FleetWrite::Renderings(renderings).into());
    }
    Ok(commit)
}

fn object(base: &Base, agent: AgentId, content: &Content, now: Timestamp) -> DeploymentObject {
    let of = [base.id.as_uuid(), agent.as_uuid()];
    let checksum = content.checksum();
    let id = derived(now, &format!("rendering {checksum}"), &of);
    DeploymentObject {
        id: DeploymentObjectId::new(id),
        stack_id: base.stack_id,
        agent_id: Some(agent),
        sequence: next_sequence(base.last_sequence, now),
        content: content.as_str().to_owned(),
        checksum,
        per_agent: None,
        is_marker: false,
        keeps: false,
        submitted_at: now,
        withdrawn_at: None,
        erased_at: None,
        deleted_at: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commit::Write;
    use crate::fixtures::fleet::{mk_agent, mk_stack};
    use crate::fixtures::{at, uuid};

    fn text(schema: &Value) -> Result<TemplateText, Refusal> {
        TemplateText::parse("kind: {{ kind }}", &schema.to_string())
    }

    fn schema() -> Value {
        json!({ "required": ["site", "kind"], "properties": {
            "kind": { "type": "string" },
            "site": { "type": "string", "x-agent-annotation": "site" },
            "replicas": { "type": "integer", "default": 1, "x-agent-annotation": "replicas" },
            "gpu": { "type": "boolean", "x-agent-label": "gpu" },
            "region": { "enum": ["eu", "us"], "x-agent-label": true },
        } })
    }

    fn per_agent(parameters: &Value) -> PerAgent {
        PerAgent::of(&text(&schema()).unwrap(), "t@1".to_owned(), parameters).unwrap().unwrap()
    }

    fn tags(labels: &[&str], annotations: &[(&str, &str)]) -> AgentTags {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        AgentTags {
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            annotations: annotations.iter().map(owned).collect(),
        }
    }

    #[test]
    fn parameters_are_labels_and_annotations_of_an_agent() {
        let one = per_agent(&json!({ "kind": "A" }));
        let berlin = tags(&["gpu", "eu"], &[("site", "berlin"), ("replicas", "3")]);
        assert_eq!(
            one.values(&berlin).unwrap(),
            json!({ "kind": "A", "site": "berlin", "replicas": 3, "gpu": true, "region": "eu" })
        );
        let bare = tags(&[], &[("site", "7")]);
        let expected = json!({ "kind": "A", "site": "7", "replicas": 1, "gpu": false });
        assert_eq!(one.values(&bare).unwrap(), expected, "a text stays one, a default holds");
        let given = per_agent(&json!({ "kind": "A", "replicas": 9 }));
        assert_eq!(given.values(&berlin).unwrap()["replicas"], 9, "what is given holds for all");
    }

    #[test]
    fn what_an_agent_lacks_is_named() {
        let one = per_agent(&json!({ "kind": "A" }));
        let problem = |labels: &[&str], annotations: &[(&str, &str)]| {
            one.values(&tags(labels, annotations)).unwrap_err()
        };
        assert!(problem(&[], &[]).contains("annotation `site`"));
        assert!(problem(&["eu", "us"], &[("site", "x")]).contains("both `eu` and `us`"));
        let many = problem(&[], &[("site", "x"), ("replicas", "many")]);
        assert!(many.contains("no integer"), "{many}");
        let half = problem(&[], &[("site", "x"), ("replicas", "1.5")]);
        assert!(half.contains("replicas"), "{half}");
    }

    #[test]
    fn only_what_agents_give_may_be_missing() {
        let text = text(&schema()).unwrap();
        let of = |parameters: &Value| PerAgent::of(&text, "t@1".to_owned(), parameters);
        assert!(of(&json!({})).unwrap_err().message.contains("kind"));
        assert!(of(&json!({ "kind": 7 })).is_err());
        let all = json!({
            "kind": "A", "site": "x", "replicas": 1, "gpu": false, "region": "eu",
        });
        assert_eq!(of(&all).unwrap(), None, "then it is the same for every agent");
    }

    #[test]
    fn a_schema_says_where_values_come_from() {
        let property = |property: Value| json!({ "properties": { "p": property } });
        for schema in [
            property(json!({ "x-agent-annotation": 7 })),
            property(json!({ "x-agent-annotation": "" })),
            property(json!({ "x-agent-label": false })),
            property(json!({ "x-agent-label": true })),
            property(json!({ "x-agent-label": "a", "x-agent-annotation": "b" })),
            property(json!({ "items": { "x-agent-label": "a" } })),
            json!({ "x-agent-label": "a" }),
        ] {
            let refusal = text(&schema).unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some("parameters_schema"), "{schema}");
        }
    }

    fn snapshot() -> RenderSnapshot {
        let base = Base {
            id: DeploymentObjectId::new(uuid(1)),
            stack_id: mk_stack().id,
            last_sequence: 7,
            accepts_secrets: false,
            rendered: None,
        };
        RenderSnapshot { now: at(1_000), agent: Some(mk_agent()), tags: 3, bases: vec![base] }
    }

    fn rendered(snapshot: &RenderSnapshot, tags: i64, content: &str) -> Vec<Rendering> {
        let made = Content::parse(content).map_err(|refusal| refusal.message);
        let attempted = Attempted { base: DeploymentObjectId::new(uuid(1)), made };
        let commit = record(snapshot, tags, &[attempted]).unwrap();
        let rows = commit.writes.iter().map(|write| match write {
            Write::Fleet(write) => match &**write {
                FleetWrite::Renderings(rows) => rows.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        });
        rows.flatten().collect()
    }

    #[test]
    fn the_same_content_stays_the_same_object() {
        let there = snapshot();
        let first = rendered(&there, 3, "kind: A").pop().unwrap();
        let object = first.object.unwrap();
        assert_eq!((object.agent_id, first.object_id), (Some(mk_agent().id), Some(object.id)));
        assert!(object.sequence > 7);
        let mut later = snapshot();
        later.bases[0].rendered = Some((object.id, object.checksum));
        let again = rendered(&later, 3, "kind: A").pop().unwrap();
        assert_eq!((again.object_id, again.object), (Some(object.id), None));
        let other = rendered(&later, 3, "kind: B").pop().unwrap();
        assert!(other.object_id.is_some_and(|id| id != object.id));
        assert_eq!(rendered(&there, 2, "kind: A"), [], "the agent was changed meanwhile");
    }

    #[test]
    fn what_cannot_be_rendered_is_kept_as_a_problem() {
        let there = snapshot();
        let secret = "kind: Secret\nstringData: {a: hunter2}";
        for content in ["a: [", secret] {
            let row = rendered(&there, 3, content).pop().unwrap();
            assert!(row.problem.is_some_and(|problem| !problem.contains("hunter2")));
            assert_eq!((row.object_id, row.object), (None, None));
        }
        let mut open = snapshot();
        open.bases[0].accepts_secrets = true;
        assert_eq!(rendered(&open, 3, secret).pop().unwrap().problem, None);
        let gone = RenderSnapshot { agent: None, ..there };
        assert!(record(&gone, 3, &[]).is_err());
    }
}
