//! Templates and their versions.

use serde_json::Value;
use slipway_core::access::idempotency::Request;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::generator::Generator;
use slipway_core::fleet::object::Submitted;
use slipway_core::fleet::per_agent::PerAgent;
use slipway_core::fleet::template::{self, NewTemplate, Template, TemplateSnapshot, TemplateText};
use slipway_core::fleet::{FleetName, text};
use slipway_core::ids::{
    AgentId, DeletionId, DeploymentObjectId, GeneratorId, StackId, TemplateId,
};
use slipway_core::precondition::Expected;

use super::port::{FleetFilter, TemplateKey, TemplateOwner};
use super::principal::{self, owns};
use super::{agents, objects, renderings, stacks};
use crate::access::authorise::{Caller, Operation, Principal, authorise};
use crate::access::reach::not_found;
use crate::deletion::request::{self, DeletableKind, DeleteOptions};
use crate::kind::{self, StoredKind, check};
use crate::ports::store::{Page, Stores};
use crate::ports::templates::RenderFailure;
use crate::ports::{KindStore, Listed};
use crate::{Context, Error};

/// Those of the project are seen by all of its generators.
impl StoredKind for Template {
    type Key = TemplateKey;
    type Snapshot = TemplateSnapshot;
    type Filter = FleetFilter;
    const READ: Operation = Operation::FleetOwnRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.fleet
    }

    fn seen_by(self, caller: &Caller) -> Option<Self> {
        let is_shared =
            self.generator_id.is_none() && matches!(caller.principal, Principal::Generator(_));
        let seen = is_shared || owns(caller, self.generator_id);
        (caller.reaches(self.project_id) && seen).then_some(self)
    }
}

impl DeletableKind for Template {
    const OPERATION: Operation = Operation::FleetTemplateDelete;
}

/// A template as received, unchecked.
#[derive(Debug, Clone, Default)]
pub struct CreateTemplate {
    /// Without one it belongs to the whole project; a generator makes its own.
    pub generator: Option<GeneratorId>,
    pub project: Option<String>,
    pub name: String,
    pub description: Option<String>,
    pub content: String,
    pub parameters_schema: String,
}

pub async fn create(
    context: &Context,
    caller: &Caller,
    input: CreateTemplate,
    request: Option<Request>,
) -> Result<TemplateId, Error> {
    let actor = authorise(caller, Operation::FleetTemplateCreate)?;
    let generator = match caller.principal {
        Principal::Generator(own) => Some(own),
        _ => input.generator,
    };
    let new = NewTemplate {
        id: TemplateId::new(context.entropy.uuid()),
        of_generator: generator.is_some(),
        name: FleetName::parse("name", &input.name)?,
        description: input.description.as_deref().map(text::description).transpose()?,
        text: TemplateText::parse(&input.content, &input.parameters_schema)?,
    };
    check_syntax(context, &new.text).await?;
    let owner = match generator {
        Some(generator) => TemplateOwner::Generator(generator),
        None => {
            let project = principal::project(caller, input.project);
            check("project", &project)?;
            TemplateOwner::Project(project)
        }
    };
    let key = TemplateKey::New { owner, name: new.name.to_string() };
    let rule = |snapshot: &TemplateSnapshot| {
        let reached =
            |one: &Generator| caller.reaches(one.project_id) && owns(caller, Some(one.id));
        let generator = snapshot.generator.clone().filter(reached);
        let project = snapshot.project.filter(|project| caller.reaches(*project));
        template::create(&TemplateSnapshot { project, generator, ..snapshot.clone() }, &new, &actor)
    };
    let id = kind::create::<Template>(context, request, new.id, &key, rule).await?;
    context.wakes.wake();
    Ok(id)
}

pub async fn fetch(
    context: &Context,
    caller: &Caller,
    id: TemplateId,
    show_deleted: bool,
) -> Result<Template, Error> {
    kind::fetch(context, caller, &id.to_string(), show_deleted).await
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    filter: &FleetFilter,
    page: Page<TemplateId>,
) -> Result<Listed<Template>, Error> {
    let project = caller.project.or(filter.project);
    kind::list(context, caller, &FleetFilter { project, ..filter.clone() }, page).await
}

/// Refuses one that the caller may read and does not own.
async fn owned(context: &Context, caller: &Caller, id: TemplateId) -> Result<Template, Error> {
    let found = fetch(context, caller, id, false).await?;
    if owns(caller, found.generator_id) {
        return Ok(found);
    }
    Err(not_found(ErrorKind::TemplateNotFound, TemplateId::KIND, id))
}

/// Makes the next version and answers its id.
pub async fn revise(
    context: &Context,
    caller: &Caller,
    id: TemplateId,
    description: Option<&str>,
    (content, parameters_schema): (&str, &str),
    expected: Expected,
) -> Result<TemplateId, Error> {
    let actor = authorise(caller, Operation::FleetTemplateUpdate)?;
    owned(context, caller, id).await?;
    let text = TemplateText::parse(content, parameters_schema)?;
    check_syntax(context, &text).await?;
    let description = description.map(text::description).transpose()?;
    let next = TemplateId::new(context.entropy.uuid());
    let mut rule = |snapshot: &_| {
        template::revise(snapshot, next, description.as_deref(), &text, expected, &actor)
    };
    context.stores.kind::<Template>().decide(&TemplateKey::Existing(id), &mut rule).await?;
    context.wakes.wake();
    Ok(next)
}

/// One version; what was made from it stays.
pub async fn delete(
    context: &Context,
    caller: &Caller,
    id: TemplateId,
    options: DeleteOptions<'_>,
) -> Result<DeletionId, Error> {
    authorise(caller, Operation::FleetTemplateDelete)?;
    owned(context, caller, id).await?;
    request::delete::<Template>(context, caller, &TemplateKey::Existing(id), options).await
}

async fn check_syntax(context: &Context, text: &TemplateText) -> Result<(), Error> {
    match context.templates.check(&text.content).await {
        Ok(()) => Ok(()),
        Err(RenderFailure::Template(problem)) => {
            Err(Refusal::invalid("template_content", format!("is no template: {problem}")).into())
        }
        Err(RenderFailure::Unavailable(why)) => Err(unavailable(&why)),
    }
}

fn unavailable(why: &str) -> Error {
    let message = format!("templates cannot be rendered now: {why}; try again");
    Refusal::new(ErrorKind::Unavailable, message).into()
}

/// What the template makes of these parameters, as a preview; for an agent with its labels and
/// annotations.
pub async fn render(
    context: &Context,
    caller: &Caller,
    id: TemplateId,
    parameters: &Value,
    agent: Option<AgentId>,
) -> Result<String, Error> {
    let template = fetch(context, caller, id, false).await?;
    let per_agent = PerAgent::of(&template.text, label(&template), parameters)?;
    let (Some(per_agent), Some(agent)) = (per_agent, agent) else {
        return made_of(context, &template, parameters).await;
    };
    let found = agents::fetch(context, caller, agent, false).await?;
    if found.project_id != template.project_id {
        return Err(not_found(ErrorKind::AgentNotFound, AgentId::KIND, agent));
    }
    let tags = renderings::tags_of(context, agent).await?;
    let values = per_agent.values(&tags).map_err(|problem| {
        let message = format!("for agent `{}`: {problem}", found.name);
        Refusal::new(ErrorKind::TemplateFailed, message)
    })?;
    made_of(context, &template, &values).await
}

/// Name and version.
fn label(template: &Template) -> String {
    format!("{}@{}", template.name, template.version)
}

async fn made_of(
    context: &Context,
    template: &Template,
    parameters: &Value,
) -> Result<String, Error> {
    template.text.check(parameters)?;
    match context.templates.render(&template.text.content, parameters).await {
        Ok(text) => Ok(text),
        Err(RenderFailure::Template(problem)) => {
            let message =
                format!("template `{}` makes nothing of this: it {problem}", template.name);
            Err(Refusal::new(ErrorKind::TemplateFailed, message).into())
        }
        Err(RenderFailure::Unavailable(why)) => Err(unavailable(&why)),
    }
}

/// Submits what the template makes of these parameters, or of these and each agent. The stack
/// has what the template is tagged with.
pub async fn instantiate(
    context: &Context,
    caller: &Caller,
    stack: StackId,
    (id, parameters): (TemplateId, &Value),
    request: Option<Request>,
) -> Result<DeploymentObjectId, Error> {
    authorise(caller, Operation::FleetObjectSubmit)?;
    let found = stacks::fetch(context, caller, stack, false).await?;
    let template = fetch(context, caller, id, false).await?;
    if template.project_id != found.project_id {
        return Err(not_found(ErrorKind::TemplateNotFound, TemplateId::KIND, id));
    }
    let store = &context.stores.fleet;
    let labels = (store.label_list(id.into()).await?, store.annotation_list(id.into()).await?);
    let of_stack =
        (store.label_list(stack.into()).await?, store.annotation_list(stack.into()).await?);
    template::matches((&labels.0, &labels.1), (&of_stack.0, &of_stack.1))?;
    let submitted = match PerAgent::of(&template.text, label(&template), parameters)? {
        Some(per_agent) => Submitted::Template(template.text.content, per_agent),
        None => Submitted::parse(&made_of(context, &template, parameters).await?, false)?,
    };
    objects::submit_parsed(context, caller, stack, &submitted, request).await
}
