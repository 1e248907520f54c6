//! A template: text from which objects are made, with a schema of its parameters. Each change
//! is a new version, a row of its own.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::access::audit::{About, Actor};
use crate::catalog::name::document;
use crate::catalog::parameters::ParameterSchema;
use crate::commit::Commit;
use crate::deletion::request::{Deletable, Leaving};
use crate::error::{ErrorKind, Refusal};
use crate::fleet::content::CONTENT_MAX;
use crate::fleet::event::{Announced, Happened};
use crate::fleet::generator::Generator;
use crate::fleet::per_agent;
use crate::fleet::tags::{Annotation, Label};
use crate::fleet::{FleetName, FleetWrite};
use crate::ids::{DeletionId, GeneratorId, ProjectId, Revision, TemplateId};
use crate::kind::{audited, existing, kind, unknown};
use crate::precondition::Expected;
use crate::time::Timestamp;

/// The largest schema of parameters, in bytes.
pub const SCHEMA_MAX: usize = 256 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub id: TemplateId,
    pub project_id: ProjectId,
    /// `None` for a template of the whole project.
    pub generator_id: Option<GeneratorId>,
    /// Unique with its version and generator among the not deleted of its project.
    pub name: FleetName,
    pub description: Option<String>,
    /// 1 for the first.
    pub version: i32,
    pub text: TemplateText,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Template, TemplateId, TemplateNotFound);

/// What a template is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateText {
    pub content: String,
    /// A JSON Schema, as text.
    pub parameters_schema: String,
}

impl TemplateText {
    pub fn parse(content: &str, parameters_schema: &str) -> Result<Self, Refusal> {
        let content = document("template_content", content, CONTENT_MAX)?;
        if content.trim().is_empty() {
            return Err(Refusal::invalid("template_content", "must have a text"));
        }
        let schema = document("parameters_schema", parameters_schema, SCHEMA_MAX)?;
        let text = Self { content, parameters_schema: schema };
        let schema = text.schema()?;
        per_agent::check(schema.document())
            .map_err(|problem| Refusal::invalid("parameters_schema", problem))?;
        Ok(text)
    }

    fn schema(&self) -> Result<ParameterSchema, Refusal> {
        let wrong = |problem: String| Refusal::invalid("parameters_schema", problem);
        let mut value: Value = serde_json::from_str(&self.parameters_schema)
            .map_err(|error| wrong(format!("is no JSON: {error}")))?;
        // As JSON Schema has it: what is not named may be given. A blueprint is closed instead.
        if let Value::Object(keywords) = &mut value {
            keywords.entry("type").or_insert_with(|| json!("object"));
            keywords.entry("additionalProperties").or_insert(Value::Bool(true));
        }
        ParameterSchema::read(value).map_err(|faults| {
            let first = faults.into_iter().next().map(|fault| fault.message);
            wrong(format!("is no usable JSON Schema: {}", first.unwrap_or_default()))
        })
    }

    /// Refuses parameters that do not fit the schema, and names every fault.
    pub fn check(&self, parameters: &Value) -> Result<(), Refusal> {
        let Value::Object(values) = parameters else {
            return Err(Refusal::invalid("parameters", "must be an object"));
        };
        let values = values.iter().map(|(name, value)| (name.clone(), value.clone()));
        self.schema()?.validate(values.collect()).map(|_| ())
    }

    /// SHA-256 over both parts, in hexadecimal.
    pub fn checksum(&self) -> String {
        let mut hasher = Sha256::new();
        let length = u64::try_from(self.content.len()).unwrap_or(u64::MAX);
        hasher.update(length.to_be_bytes());
        hasher.update(self.content.as_bytes());
        hasher.update(self.parameters_schema.as_bytes());
        HEXLOWER.encode(&hasher.finalize())
    }
}

/// Refuses to make an object of a stack that lacks a label or an annotation of the template.
pub fn matches(
    template: (&[Label], &[Annotation]),
    stack: (&[Label], &[Annotation]),
) -> Result<(), Refusal> {
    let has_label = |one: &Label| stack.0.iter().any(|other| other.label == one.label);
    let has_annotation = |one: &Annotation| {
        stack.1.iter().any(|other| (&other.key, &other.value) == (&one.key, &one.value))
    };
    let lacking = template.0.iter().find(|one| !has_label(one)).map(|one| one.label.clone());
    let lacking = lacking.map(|label| format!("label `{label}`")).or_else(|| {
        let one = template.1.iter().find(|one| !has_annotation(one))?;
        Some(format!("annotation `{}: {}`", one.key, one.value))
    });
    let Some(lacking) = lacking else { return Ok(()) };
    let message = format!("the stack lacks the {lacking} of the template; add it, or take another");
    Err(Refusal::new(ErrorKind::TemplateMismatch, message).at("template_id"))
}

/// A template, its row locked, or what a new one needs.
#[derive(Debug, Clone)]
pub struct TemplateSnapshot {
    pub now: Timestamp,
    /// Of a new one: its project, if it is live, and its generator, both locked.
    pub project: Option<ProjectId>,
    pub generator: Option<Generator>,
    /// The addressed template.
    pub template: Option<Template>,
    /// The highest version of its name and generator; 0 if there is none. Of the deleted ones
    /// too, so that a version never means two texts.
    pub last_version: i32,
    /// A live template of the requested name exists.
    pub is_taken: bool,
}

#[derive(Debug, Clone)]
pub struct NewTemplate {
    pub id: TemplateId,
    /// Whether it belongs to a generator.
    pub of_generator: bool,
    pub name: FleetName,
    pub description: Option<String>,
    pub text: TemplateText,
}

/// The first version of a name.
pub fn create(
    snapshot: &TemplateSnapshot,
    new: &NewTemplate,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let generator = snapshot.generator.as_ref();
    if new.of_generator && generator.is_none() {
        return Err(unknown(ErrorKind::GeneratorNotFound, "generator").at("generator_id"));
    }
    let project = generator.map(|generator| generator.project_id).or(snapshot.project);
    let Some(project_id) = project else {
        return Err(unknown(ErrorKind::ProjectNotFound, "project").at("project"));
    };
    if snapshot.is_taken {
        let name = &new.name;
        let message = format!(
            "there is a template `{name}` already; change it, which makes a new version, or choose another name"
        );
        return Err(Refusal::new(ErrorKind::NameTaken, message).at("name"));
    }
    let template = Template {
        id: new.id,
        project_id,
        generator_id: generator.map(|generator| generator.id),
        name: new.name.clone(),
        description: new.description.clone(),
        version: snapshot.last_version + 1,
        text: new.text.clone(),
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    Ok(inserted(template, "template.create", actor, snapshot.now))
}

/// The next version of a template, as a row of its own; the others stay as they are.
pub fn revise(
    snapshot: &TemplateSnapshot,
    id: TemplateId,
    description: Option<&str>,
    text: &TemplateText,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let before = existing(&snapshot.template, expected)?;
    let template = Template {
        id,
        description: description.map(str::to_owned).or_else(|| before.description.clone()),
        version: snapshot.last_version + 1,
        text: text.clone(),
        revision: Revision::FIRST,
        created_at: snapshot.now,
        updated_at: snapshot.now,
        ..before.clone()
    };
    Ok(inserted(template, "template.update", actor, snapshot.now))
}

fn inserted(template: Template, verb: &'static str, actor: &Actor, now: Timestamp) -> Commit {
    let details = json!({
        "name": template.name, "version": template.version,
        "generator_id": template.generator_id, "checksum": template.text.checksum(),
    });
    let about = About::new(template.id).of(template.project_id);
    let event = announced(&template, template.revision, now).happened(Happened::Created, None);
    let write = FleetWrite::TemplateInsert(template);
    let mut commit = audited(write, verb, about, actor, now, details);
    commit.events.extend(event);
    commit
}

fn announced(template: &Template, revision: Revision, at: Timestamp) -> Announced<'_> {
    let Template { id, project_id, .. } = *template;
    Announced { subject: id.into(), name: template.name.as_str(), project_id, revision, at }
}

/// What was made from it stays as it is.
impl Deletable for Template {
    type Snapshot = TemplateSnapshot;
    const DELETE: &'static str = "template.delete";

    fn found(snapshot: &TemplateSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.template, snapshot.now)
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn project(&self) -> Option<ProjectId> {
        Some(self.project_id)
    }

    fn leaving(&self, _snapshot: &TemplateSnapshot, leaving: &Leaving<'_>) -> Commit {
        let gone = announced(self, self.revision.next(), leaving.now);
        let events = gone.happened(Happened::Deleted, Some(leaving.deletion_id));
        Commit { events: events.into_iter().collect(), ..Commit::default() }
    }

    fn free(&self, _snapshot: &TemplateSnapshot, _cascade: bool) -> Result<(), Refusal> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::Write;
    use crate::fixtures::fleet::{mk_generator, mk_template};
    use crate::fixtures::{at, mk_actor};

    fn snapshot() -> TemplateSnapshot {
        TemplateSnapshot {
            now: at(1_000),
            project: None,
            generator: Some(mk_generator()),
            template: Some(mk_template()),
            last_version: 4,
            is_taken: false,
        }
    }

    fn version(commit: &Commit) -> i32 {
        match &commit.writes[0] {
            Write::Fleet(write) => match &**write {
                FleetWrite::TemplateInsert(template) => template.version,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_text_and_its_schema_are_checked() {
        assert!(TemplateText::parse("kind: {{ kind }}", r#"{"type": "object"}"#).is_ok());
        let fault = |content, schema| TemplateText::parse(content, schema).unwrap_err().field;
        assert_eq!(fault(" ", "{}").as_deref(), Some("template_content"));
        assert_eq!(fault("a", "{").as_deref(), Some("parameters_schema"));
        assert_eq!(fault("a", r#"{"type": 5}"#).as_deref(), Some("parameters_schema"));
        let one = TemplateText::parse("ab", "{}").unwrap();
        let other = TemplateText::parse("a", "{}").unwrap();
        assert_ne!(one.checksum(), other.checksum());
    }

    #[test]
    fn every_change_is_a_version_of_its_own() {
        let there = snapshot();
        let new = NewTemplate {
            id: mk_template().id,
            of_generator: true,
            name: mk_template().name,
            description: None,
            text: mk_template().text,
        };
        assert_eq!(version(&create(&there, &new, &mk_actor()).unwrap()), 5);
        let text = mk_template().text;
        let revised = revise(&there, new.id, None, &text, Expected::Any, &mk_actor()).unwrap();
        assert_eq!(version(&revised), 5);
        let taken = TemplateSnapshot { is_taken: true, ..there.clone() };
        assert_eq!(create(&taken, &new, &mk_actor()).unwrap_err().kind, ErrorKind::NameTaken);
        let orphan = TemplateSnapshot { generator: None, ..there };
        let refusal = create(&orphan, &new, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::GeneratorNotFound);
        let of_project = NewTemplate { of_generator: false, ..new };
        let refusal = create(&orphan, &of_project, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::ProjectNotFound);
    }
}
