//! Labels and annotations of agents, stacks and templates.

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use slipway_app::fleet::tags;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::tags::{Annotation, Label};
use slipway_core::ids::{AgentId, StackId, TemplateId};
use slipway_core::subject::Subject;
use slipway_wire::fleet::{
    AddAnnotationRequest, AgentAnnotation, AgentLabel, NewAgentAnnotation, NewAgentLabel,
    NewStackAnnotation, StackAnnotation, StackLabel, TemplateAnnotation, TemplateLabel,
};

use crate::request::{Answered, Body, Call, Done, Id, Segments, Untagged};

/// An owner of labels and annotations, and how they are shown.
pub(super) trait Owner:
    std::str::FromStr<Err = slipway_core::ids::InvalidId> + Copy + Into<Subject>
{
    type Label: serde::Serialize;
    type Annotation: serde::Serialize;

    fn label(label: &Label) -> Self::Label;
    fn annotation(annotation: &Annotation) -> Self::Annotation;
}

macro_rules! owner {
    ($id:ty, $label:ident, $annotation:ident, $owner:ident $(, $created:ident)?) => {
        impl Owner for $id {
            type Label = $label;
            type Annotation = $annotation;

            fn label(label: &Label) -> $label {
                $label {
                    $owner: label.owner.id.to_string(),
                    id: label.id.to_string(),
                    label: label.label.clone(),
                    $($created: label.created_at.to_string(),)?
                }
            }

            fn annotation(annotation: &Annotation) -> $annotation {
                $annotation {
                    $owner: annotation.owner.id.to_string(),
                    id: annotation.id.to_string(),
                    key: annotation.key.clone(),
                    value: annotation.value.clone(),
                    $($created: annotation.created_at.to_string(),)?
                }
            }
        }
    };
}

owner!(AgentId, AgentLabel, AgentAnnotation, agent_id);
owner!(StackId, StackLabel, StackAnnotation, stack_id);
owner!(TemplateId, TemplateLabel, TemplateAnnotation, template_id, created_at);

pub(super) async fn labels<O: Owner>(call: Call, Id(owner): Id<O>) -> Untagged<Vec<O::Label>> {
    let found = tags::labels(&call.context, &call.caller, owner.into()).await?;
    Ok(Json(found.iter().map(O::label).collect()))
}

pub(super) async fn annotations<O: Owner>(
    call: Call,
    Id(owner): Id<O>,
) -> Untagged<Vec<O::Annotation>> {
    let found = tags::annotations(&call.context, &call.caller, owner.into()).await?;
    Ok(Json(found.iter().map(O::annotation).collect()))
}

async fn add_label<O: Owner>(call: &Call, owner: O, label: &str) -> Answered {
    let id = tags::add_label(&call.context, &call.caller, owner.into(), label).await?;
    let found = tags::labels(&call.context, &call.caller, owner.into()).await?;
    let found = found.iter().find(|found| found.id == id).ok_or_else(removed)?;
    Ok((StatusCode::CREATED, Json(O::label(found))).into_response())
}

async fn add_annotation<O: Owner>(call: &Call, owner: O, tag: (&str, &str)) -> Answered {
    let id = tags::add_annotation(&call.context, &call.caller, owner.into(), tag).await?;
    let found = tags::annotations(&call.context, &call.caller, owner.into()).await?;
    let found = found.iter().find(|found| found.id == id).ok_or_else(removed)?;
    Ok((StatusCode::CREATED, Json(O::annotation(found))).into_response())
}

/// Somebody removed it before it could be shown.
fn removed() -> Refusal {
    Refusal::new(ErrorKind::EntryNotFound, "somebody removed it at the same time; add it again")
}

/// A body that names its owner names that of the path.
pub(super) fn same(field: &str, given: &str, path: impl Into<Subject>) -> Result<(), Refusal> {
    if given.parse::<uuid::Uuid>().is_ok_and(|given| given == path.into().id) {
        return Ok(());
    }
    Err(Refusal::invalid(field, "must be the id in the path"))
}

pub(super) async fn label_agent(
    call: Call,
    Id(agent): Id<AgentId>,
    Body(body): Body<NewAgentLabel>,
) -> Answered {
    same("agent_id", &body.agent_id, agent)?;
    add_label(&call, agent, &body.label).await
}

/// The body is the label, as a JSON text.
pub(super) async fn label<O: Owner>(
    call: Call,
    Id(owner): Id<O>,
    Body(label): Body<String>,
) -> Answered {
    add_label(&call, owner, &label).await
}

pub(super) async fn annotate_agent(
    call: Call,
    Id(agent): Id<AgentId>,
    Body(body): Body<NewAgentAnnotation>,
) -> Answered {
    same("agent_id", &body.agent_id, agent)?;
    add_annotation(&call, agent, (&body.key, &body.value)).await
}

pub(super) async fn annotate_stack(
    call: Call,
    Id(stack): Id<StackId>,
    Body(body): Body<NewStackAnnotation>,
) -> Answered {
    same("stack_id", &body.stack_id, stack)?;
    add_annotation(&call, stack, (&body.key, &body.value)).await
}

pub(super) async fn annotate_template(
    call: Call,
    Id(template): Id<TemplateId>,
    Body(body): Body<AddAnnotationRequest>,
) -> Answered {
    add_annotation(&call, template, (&body.key, &body.value)).await
}

/// Of the path: whose, and which.
fn both<O: Owner>(segments: [String; 2]) -> Result<(O, String), Refusal> {
    let [owner, which] = segments;
    let owner = owner.parse::<O>().map_err(|error| Refusal::from(error).at("id"))?;
    Ok((owner, which))
}

pub(super) async fn unlabel<O: Owner>(call: Call, Segments(path): Segments<2>) -> Done {
    let (owner, label) = both::<O>(path)?;
    tags::remove_label(&call.context, &call.caller, owner.into(), &label).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn unannotate<O: Owner>(call: Call, Segments(path): Segments<2>) -> Done {
    let (owner, key) = both::<O>(path)?;
    tags::remove_annotation(&call.context, &call.caller, owner.into(), &key).await?;
    Ok(StatusCode::NO_CONTENT)
}
