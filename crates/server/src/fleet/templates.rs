//! Templates and their versions.

use axum::Json;
use axum::extract::Request;
use slipway_app::fleet::templates::{self, CreateTemplate};
use slipway_app::ports::store::Page;
use slipway_core::error::Refusal;
use slipway_core::fleet::template;
use slipway_core::ids::{AgentId, GeneratorId, StackId, TemplateId};
use slipway_wire::fleet::{
    CreateTemplateRequest, RenderTemplate, RenderedTemplate, StackTemplate,
    TemplateInstantiationRequest, UpdateTemplateRequest,
};

use super::objects::{self, BODY_MAX, large};
use super::{deleting, lists};
use crate::request::{
    Answered, Body, Call, Creation, Documented, Id, IfMatch, Made, Referring, Shown, Untagged,
    delete_options, kind, text,
};

pub(super) async fn list(call: Call) -> Answered {
    let filter = lists::filter(&call).await?;
    let mut pages = lists::Pages::new(&call)?;
    while let Some(page) = pages.next() {
        let page = Page { after: page.after.map(TemplateId::new), limit: page.limit };
        let found = templates::list(&call.context, &call.caller, &filter, page).await?;
        pages.add(found.map(template::Template::document));
    }
    Ok(pages.answer())
}

pub(super) async fn create(call: Call, request: Request) -> Made {
    let new = Creation::read_json(request, BODY_MAX).await?;
    let make = async |body: CreateTemplateRequest, request| {
        let generator = body.generator_id.map(|text| {
            text.parse::<GeneratorId>().map_err(|error| Refusal::from(error).at("generator_id"))
        });
        let input = CreateTemplate {
            generator: generator.transpose()?,
            project: body.project,
            name: body.name,
            description: body.description,
            content: body.template_content,
            parameters_schema: body.parameters_schema,
        };
        templates::create(&call.context, &call.caller, input, request).await
    };
    kind::create::<template::Template, _>(&call, new, make).await
}

/// Makes the next version.
pub(super) async fn revise(
    call: Call,
    Id(id): Id<TemplateId>,
    IfMatch(expected): IfMatch,
    request: Request,
) -> Shown<StackTemplate> {
    let body: UpdateTemplateRequest = large(request).await?;
    let text = (body.template_content.as_str(), body.parameters_schema.as_str());
    let described = body.description.as_deref();
    let next =
        templates::revise(&call.context, &call.caller, id, described, text, expected).await?;
    kind::show::<template::Template>(&call, next, false).await
}

pub(super) async fn delete(
    call: Call,
    Id(id): Id<TemplateId>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let options = delete_options(&call.query, expected)?;
    let deletion = templates::delete(&call.context, &call.caller, id, options).await?;
    Ok(deleting::answer(deletion))
}

/// Makes an object of a stack.
pub(super) async fn instantiate(call: Call, Id(stack): Id<StackId>, request: Request) -> Made {
    let new = Creation::read_json(request, BODY_MAX).await?;
    let make = async |body: TemplateInstantiationRequest, request| {
        let template = body.template_id.parse::<TemplateId>();
        let template = template.map_err(|error| Refusal::from(error).at("template_id"))?;
        let of = (template, &body.parameters);
        templates::instantiate(&call.context, &call.caller, stack, of, request).await
    };
    objects::made(&call, new, make).await
}

/// What it would make.
pub(super) async fn render(
    call: Call,
    Id(id): Id<TemplateId>,
    Body(body): Body<RenderTemplate>,
) -> Untagged<RenderedTemplate> {
    let agent = body
        .agent_id
        .as_deref()
        .map(|text| text.parse::<AgentId>().map_err(|error| Refusal::from(error).at("agent_id")));
    let agent = agent.transpose()?;
    let (context, caller) = (&call.context, &call.caller);
    let yaml_content = templates::render(context, caller, id, &body.parameters, agent).await?;
    Ok(Json(RenderedTemplate { yaml_content }))
}

impl Referring for StackTemplate {}

impl Documented for template::Template {
    type Document = StackTemplate;

    fn document(&self) -> StackTemplate {
        StackTemplate {
            checksum: self.text.checksum(),
            created_at: self.created_at.to_string(),
            deleted_at: text(self.deleted_at),
            description: self.description.clone(),
            generator_id: text(self.generator_id),
            id: self.id.to_string(),
            name: self.name.to_string(),
            parameters_schema: self.text.parameters_schema.clone(),
            template_content: self.text.content.clone(),
            updated_at: self.updated_at.to_string(),
            version: self.version,
        }
    }
}
