//! Stacks.

use slipway_core::access::idempotency::Request;
use slipway_core::fleet::generator::Generator;
use slipway_core::fleet::stack::{self, NewStack, Stack, StackChange, StackSnapshot};
use slipway_core::fleet::{FleetName, text};
use slipway_core::ids::{DeletionId, GeneratorId, StackId};
use slipway_core::precondition::Expected;
use slipway_core::rollouts::record::Strategy;

use super::port::{FleetFilter, StackKey};
use super::principal::owns;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::deletion::request::{self, DeletableKind, DeleteOptions};
use crate::kind::{self, StoredKind};
use crate::ports::store::{Page, Stores};
use crate::ports::{KindStore, Listed};
use crate::{Context, Error};

impl StoredKind for Stack {
    type Key = StackKey;
    type Snapshot = StackSnapshot;
    type Filter = FleetFilter;
    const READ: Operation = Operation::FleetOwnRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.fleet
    }

    fn seen_by(self, caller: &Caller) -> Option<Self> {
        let seen = caller.reaches(self.project_id) && owns(caller, Some(self.generator_id));
        seen.then_some(self)
    }
}

impl DeletableKind for Stack {
    const OPERATION: Operation = Operation::FleetStackDelete;
}

/// A stack as received, unchecked.
#[derive(Debug, Clone)]
pub struct CreateStack {
    pub generator: GeneratorId,
    pub name: String,
    pub description: Option<String>,
}

pub async fn create(
    context: &Context,
    caller: &Caller,
    input: CreateStack,
    request: Option<Request>,
) -> Result<StackId, Error> {
    let actor = authorise(caller, Operation::FleetStackCreate)?;
    let new = NewStack {
        id: StackId::new(context.entropy.uuid()),
        name: FleetName::parse("name", &input.name)?,
        description: input.description.as_deref().map(text::description).transpose()?,
    };
    let key = StackKey::New { generator: input.generator, name: new.name.to_string() };
    let rule = |snapshot: &StackSnapshot| {
        let reached =
            |one: &Generator| caller.reaches(one.project_id) && owns(caller, Some(one.id));
        let generator = snapshot.generator.clone().filter(reached);
        stack::create(&StackSnapshot { generator, ..snapshot.clone() }, &new, &actor)
    };
    let id = kind::create::<Stack>(context, request, new.id, &key, rule).await?;
    context.wakes.wake_offers();
    Ok(id)
}

pub async fn fetch(
    context: &Context,
    caller: &Caller,
    id: StackId,
    show_deleted: bool,
) -> Result<Stack, Error> {
    kind::fetch(context, caller, &id.to_string(), show_deleted).await
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    filter: &FleetFilter,
    page: Page<StackId>,
) -> Result<Listed<Stack>, Error> {
    let project = caller.project.or(filter.project);
    kind::list(context, caller, &FleetFilter { project, ..filter.clone() }, page).await
}

pub async fn update(
    context: &Context,
    caller: &Caller,
    id: StackId,
    change: &StackChange,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::FleetStackUpdate)?;
    fetch(context, caller, id, false).await?;
    let mut rule = |snapshot: &_| stack::update(snapshot, change, expected, &actor);
    Ok(context.stores.kind::<Stack>().decide(&StackKey::Existing(id), &mut rule).await?)
}

/// Every agent that holds it is told to remove it.
pub async fn delete(
    context: &Context,
    caller: &Caller,
    id: StackId,
    options: DeleteOptions<'_>,
) -> Result<DeletionId, Error> {
    authorise(caller, Operation::FleetStackDelete)?;
    fetch(context, caller, id, false).await?;
    request::delete::<Stack>(context, caller, &StackKey::Existing(id), options).await
}

/// How the objects of the stack are rolled out from the next one on; `None` brings each to all
/// agents at once.
pub async fn set_strategy(
    context: &Context,
    caller: &Caller,
    id: StackId,
    strategy: Option<Strategy>,
    expected: Expected,
) -> Result<(), Error> {
    let change = StackChange { strategy: Some(strategy), ..StackChange::default() };
    update(context, caller, id, &change, expected).await
}
