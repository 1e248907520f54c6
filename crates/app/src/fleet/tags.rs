//! Labels and annotations of agents, stacks and templates.

use slipway_core::access::audit::Actor;
use slipway_core::fleet::tags::{self, Annotation, Label, TagSnapshot};
use slipway_core::fleet::text::tag;
use slipway_core::ids::{AgentId, StackId, TemplateId};
use slipway_core::subject::{Subject, SubjectKind};
use slipway_core::time::Timestamp;
use uuid::Uuid;

use super::{agents, offers, stacks, templates};
use crate::access::authorise::{Caller, Operation, Principal, authorise};
use crate::{Context, Error};

/// Whoever may see the owner sees what it is tagged with.
async fn seen(context: &Context, caller: &Caller, owner: Subject) -> Result<(), Error> {
    match owner.kind {
        SubjectKind::Agent => {
            agents::fetch(context, caller, AgentId::new(owner.id), false).await?;
        }
        SubjectKind::Stack => {
            let id = StackId::new(owner.id);
            if let Principal::Agent(agent) = caller.principal {
                return offers::known(context, agent, id).await;
            }
            stacks::fetch(context, caller, id, false).await?;
        }
        _ => {
            templates::fetch(context, caller, TemplateId::new(owner.id), false).await?;
        }
    }
    Ok(())
}

async fn changing(context: &Context, caller: &Caller, owner: Subject) -> Result<Actor, Error> {
    let operation = match owner.kind {
        SubjectKind::Agent => Operation::FleetAgentTag,
        SubjectKind::Stack => Operation::FleetStackUpdate,
        _ => Operation::FleetTemplateUpdate,
    };
    let actor = authorise(caller, operation)?;
    seen(context, caller, owner).await?;
    Ok(actor)
}

pub async fn add_label(
    context: &Context,
    caller: &Caller,
    owner: Subject,
    label: &str,
) -> Result<Uuid, Error> {
    let actor = changing(context, caller, owner).await?;
    let id = context.entropy.uuid();
    let new = Label { id, owner, label: tag("label", label)?, created_at: Timestamp::ZERO };
    let mut rule = |snapshot: &TagSnapshot<Label>| {
        tags::add(snapshot, &Label { created_at: snapshot.now, ..new.clone() }, &actor)
    };
    context.stores.fleet.decide_label(owner, &new.label, &mut rule).await?;
    context.wakes.wake_offers();
    Ok(id)
}

pub async fn remove_label(
    context: &Context,
    caller: &Caller,
    owner: Subject,
    label: &str,
) -> Result<(), Error> {
    let actor = changing(context, caller, owner).await?;
    let mut rule = |snapshot: &TagSnapshot<Label>| tags::remove(snapshot, owner, label, &actor);
    context.stores.fleet.decide_label(owner, label, &mut rule).await?;
    context.wakes.wake_offers();
    Ok(())
}

pub async fn labels(
    context: &Context,
    caller: &Caller,
    owner: Subject,
) -> Result<Vec<Label>, Error> {
    seen(context, caller, owner).await?;
    Ok(context.stores.fleet.label_list(owner).await?)
}

pub async fn add_annotation(
    context: &Context,
    caller: &Caller,
    owner: Subject,
    (key, value): (&str, &str),
) -> Result<Uuid, Error> {
    let actor = changing(context, caller, owner).await?;
    let (key, value) = (tag("key", key)?, tag("value", value)?);
    let id = context.entropy.uuid();
    let new = Annotation { id, owner, key, value, created_at: Timestamp::ZERO };
    let mut rule = |snapshot: &TagSnapshot<Annotation>| {
        tags::add(snapshot, &Annotation { created_at: snapshot.now, ..new.clone() }, &actor)
    };
    context.stores.fleet.decide_annotation(owner, &new.key, &mut rule).await?;
    context.wakes.wake_offers();
    Ok(id)
}

pub async fn remove_annotation(
    context: &Context,
    caller: &Caller,
    owner: Subject,
    key: &str,
) -> Result<(), Error> {
    let actor = changing(context, caller, owner).await?;
    let mut rule = |snapshot: &TagSnapshot<Annotation>| tags::remove(snapshot, owner, key, &actor);
    context.stores.fleet.decide_annotation(owner, key, &mut rule).await?;
    context.wakes.wake_offers();
    Ok(())
}

pub async fn annotations(
    context: &Context,
    caller: &Caller,
    owner: Subject,
) -> Result<Vec<Annotation>, Error> {
    seen(context, caller, owner).await?;
    Ok(context.stores.fleet.annotation_list(owner).await?)
}
