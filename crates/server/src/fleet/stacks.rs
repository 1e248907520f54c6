//! Stacks.

use axum::Json;
use axum::http::StatusCode;
use serde_json::Value;
use slipway_app::fleet::stacks::{self, CreateStack};
use slipway_app::ports::store::Page;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::stack::{self, StackChange};
use slipway_core::ids::{GeneratorId, StackId};
use slipway_wire::fleet::{NewStack, Stack, UpdateStack};
use slipway_wire::rollouts::RolloutStrategy;

use super::{deleting, lists, put};
use crate::request::{
    Answered, Body, Call, Creation, Documented, Done, Id, IfMatch, Made, Referring, Shown,
    Untagged, delete_options, kind, text,
};
use crate::rollouts::{self, strategy_document};

pub(super) async fn list(call: Call) -> Answered {
    let filter = lists::filter(&call).await?;
    let mut pages = lists::Pages::new(&call)?;
    while let Some(page) = pages.next() {
        let page = Page { after: page.after.map(StackId::new), limit: page.limit };
        let found = stacks::list(&call.context, &call.caller, &filter, page).await?;
        pages.add(found.map(stack::Stack::document));
    }
    Ok(pages.answer())
}

pub(super) async fn create(call: Call, new: Creation<NewStack>) -> Made {
    let make = async |body: NewStack, request| {
        let generator = body.generator_id.parse::<GeneratorId>();
        let generator = generator.map_err(|error| Refusal::from(error).at("generator_id"))?;
        let NewStack { name, description, .. } = body;
        let input = CreateStack { generator, name, description };
        stacks::create(&call.context, &call.caller, input, request).await
    };
    kind::create::<stack::Stack, _>(&call, new, make).await
}

pub(super) async fn update(
    call: Call,
    Id(id): Id<StackId>,
    IfMatch(expected): IfMatch,
    Body(body): Body<Value>,
) -> Shown<Stack> {
    let found = stacks::fetch(&call.context, &call.caller, id, false).await?;
    let given: UpdateStack = put::settable(&body, &found.document(), &["name", "description"])?;
    let change = StackChange {
        name: put::name("name", given.name)?,
        description: put::description(&body, given.description.as_deref())?,
        ..StackChange::default()
    };
    stacks::update(&call.context, &call.caller, id, &change, expected).await?;
    kind::show::<stack::Stack>(&call, id, false).await
}

pub(super) async fn delete(
    call: Call,
    Id(id): Id<StackId>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let options = delete_options(&call.query, expected)?;
    let deletion = stacks::delete(&call.context, &call.caller, id, options).await?;
    Ok(deleting::answer(deletion))
}

/// 404 if each object reaches all agents at once.
pub(super) async fn strategy(call: Call, Id(id): Id<StackId>) -> Untagged<RolloutStrategy> {
    let found = stacks::fetch(&call.context, &call.caller, id, false).await?;
    let strategy = found.rolling.strategy.as_ref().ok_or_else(|| {
        let message = "the stack has no strategy: each object reaches all agents at once";
        Refusal::new(ErrorKind::EntryNotFound, message)
    })?;
    Ok(Json(strategy_document(strategy)))
}

pub(super) async fn set_strategy(
    call: Call,
    Id(id): Id<StackId>,
    IfMatch(expected): IfMatch,
    Body(body): Body<RolloutStrategy>,
) -> Untagged<RolloutStrategy> {
    let given = Some(rollouts::strategy(body));
    stacks::set_strategy(&call.context, &call.caller, id, given, expected).await?;
    strategy(call, Id(id)).await
}

pub(super) async fn remove_strategy(
    call: Call,
    Id(id): Id<StackId>,
    IfMatch(expected): IfMatch,
) -> Done {
    stacks::set_strategy(&call.context, &call.caller, id, None, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl Referring for Stack {}

impl Documented for stack::Stack {
    type Document = Stack;

    fn document(&self) -> Stack {
        Stack {
            created_at: self.created_at.to_string(),
            deleted_at: text(self.deleted_at),
            description: self.description.clone(),
            generator_id: self.generator_id.to_string(),
            id: self.id.to_string(),
            name: self.name.to_string(),
            updated_at: self.updated_at.to_string(),
        }
    }
}
