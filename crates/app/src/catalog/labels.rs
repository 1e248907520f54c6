//! Label definitions.

use slipway_core::access::idempotency::Request;
use slipway_core::catalog::label::{self, LabelDefinition, LabelKey, LabelSnapshot, NewLabel};
use slipway_core::catalog::name::document;
use slipway_core::ids::LabelDefinitionId;
use slipway_core::precondition::Expected;
use slipway_core::text::InvalidText;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::deletion::request::DeletableKind;
use crate::kind::{self, ShowDeleted, StoredKind};
use crate::ports::KindStore;
use crate::ports::store::{Rule, Stores};
use crate::{Context, Error};

impl StoredKind for LabelDefinition {
    type Key = str;
    type Snapshot = LabelSnapshot;
    type Filter = ShowDeleted;
    const READ: Operation = Operation::LabelRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.catalog
    }
}

impl DeletableKind for LabelDefinition {
    const OPERATION: Operation = Operation::LabelDelete;
}

const MAX_DESCRIPTION: usize = 1_024;

pub async fn define(
    context: &Context,
    caller: &Caller,
    key: &str,
    description: &str,
    propagate: bool,
    request: Option<Request>,
) -> Result<LabelDefinitionId, Error> {
    let actor = authorise(caller, Operation::LabelDefine)?;
    let new = NewLabel {
        id: LabelDefinitionId::new(context.entropy.uuid()),
        key: LabelKey::parse("key", key)?,
        description: checked(description)?,
        propagate,
    };
    let rule = |snapshot: &_| label::define(snapshot, &new, &actor);
    let id =
        kind::create::<LabelDefinition>(context, request, new.id, new.key.as_str(), rule).await?;
    context.wakes.wake();
    Ok(id)
}

fn checked(description: &str) -> Result<String, InvalidText> {
    document("description", description, MAX_DESCRIPTION)
}

pub async fn update(
    context: &Context,
    caller: &Caller,
    reference: &str,
    description: Option<&str>,
    propagate: Option<bool>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::LabelUpdate)?;
    description.map(checked).transpose()?;
    let mut rule = |snapshot: &_| label::update(snapshot, description, propagate, expected, &actor);
    change(context, reference, &mut rule).await
}

/// A change may be one of cloud tags.
async fn change(
    context: &Context,
    reference: &str,
    rule: &mut Rule<'_, LabelSnapshot>,
) -> Result<(), Error> {
    kind::change::<LabelDefinition>(context, reference, rule).await?;
    context.wakes.wake();
    Ok(())
}
