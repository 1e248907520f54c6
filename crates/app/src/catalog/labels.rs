//! Label definitions.

use slipway_core::access::idempotency::Request;
use slipway_core::catalog::label::{LabelDefinition, LabelKey};
use slipway_core::catalog::name::document;
use slipway_core::catalog::rules::label::{self, NewLabel};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::LabelDefinitionId;
use slipway_core::precondition::Expected;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::idempotency::{bind, record};
use crate::catalog::common::{check, missing};
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::{Context, Error};

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
        key: LabelKey::parse("key", key).map_err(Refusal::from)?,
        description: checked(description)?,
        propagate,
    };
    let record = record(context, request, new.id.as_uuid());
    context
        .stores
        .catalog
        .decide_label(new.key.as_str(), &mut |snapshot| {
            Ok(bind(label::define(snapshot, &new, &actor)?, record.as_ref()))
        })
        .await?;
    Ok(new.id)
}

fn checked(description: &str) -> Result<String, Refusal> {
    Ok(document("description", description, MAX_DESCRIPTION)?)
}

/// By key or id.
pub async fn fetch(
    context: &Context,
    caller: &Caller,
    reference: &str,
) -> Result<LabelDefinition, Error> {
    authorise(caller, Operation::LabelRead)?;
    check("label", reference)?;
    let found = context.stores.catalog.label_fetch(reference).await?;
    missing(found, ErrorKind::LabelNotFound, "label definition", reference)
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    page: Page<LabelDefinitionId>,
) -> Result<Listed<LabelDefinition>, Error> {
    authorise(caller, Operation::LabelRead)?;
    Ok(context.stores.catalog.label_list(page).await?)
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
    check("label", reference)?;
    description.map(checked).transpose()?;
    let mut rule = |snapshot: &_| label::update(snapshot, description, propagate, expected, &actor);
    Ok(context.stores.catalog.decide_label(reference, &mut rule).await?)
}

pub async fn delete(
    context: &Context,
    caller: &Caller,
    reference: &str,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::LabelDelete)?;
    check("label", reference)?;
    let mut rule = |snapshot: &_| label::delete(snapshot, expected, &actor);
    Ok(context.stores.catalog.decide_label(reference, &mut rule).await?)
}
