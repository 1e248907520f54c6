//! Clouds.

use serde_json::{Map, Value};
use slipway_core::access::idempotency::Request;
use slipway_core::catalog::Name;
use slipway_core::catalog::cloud::{Cloud, Endpoint};
use slipway_core::catalog::rules::cloud::{self, NewCloud};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{CloudId, DeletionId};
use slipway_core::precondition::Expected;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::idempotency::{bind, record};
use crate::catalog::common::{check, missing, removal};
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::{Context, Error};

pub async fn create(
    context: &Context,
    caller: &Caller,
    name: &str,
    provider: &str,
    endpoint: Map<String, Value>,
    request: Option<Request>,
) -> Result<CloudId, Error> {
    let actor = authorise(caller, Operation::CloudCreate)?;
    let new = NewCloud {
        id: CloudId::new(context.entropy.uuid()),
        name: Name::parse("name", name).map_err(Refusal::from)?,
        provider: Name::parse("provider", provider).map_err(Refusal::from)?,
        endpoint: Endpoint::parse(endpoint).map_err(Refusal::from)?,
    };
    let record = record(context, request, new.id.as_uuid());
    context
        .stores
        .catalog
        .decide_cloud(new.name.as_str(), &mut |snapshot| {
            Ok(bind(cloud::create(snapshot, &new, &actor)?, record.as_ref()))
        })
        .await?;
    Ok(new.id)
}

pub async fn fetch(
    context: &Context,
    caller: &Caller,
    reference: &str,
    show_deleted: bool,
) -> Result<Cloud, Error> {
    authorise(caller, Operation::CloudRead)?;
    check("cloud", reference)?;
    let found = context.stores.catalog.cloud_fetch(reference, show_deleted).await?;
    let cloud = missing(found, ErrorKind::CloudNotFound, "cloud", reference)?;
    Ok(as_seen_by(caller, cloud))
}

/// A caller bound to a project may see which clouds exist, but not how to reach them.
fn as_seen_by(caller: &Caller, cloud: Cloud) -> Cloud {
    match caller.project {
        Some(_) => Cloud { endpoint: Endpoint::default(), ..cloud },
        None => cloud,
    }
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    page: Page<CloudId>,
    show_deleted: bool,
) -> Result<Listed<Cloud>, Error> {
    authorise(caller, Operation::CloudRead)?;
    let found = context.stores.catalog.cloud_list(page, show_deleted).await?;
    Ok(found.map(|cloud| as_seen_by(caller, cloud.clone())))
}

pub async fn update(
    context: &Context,
    caller: &Caller,
    reference: &str,
    endpoint: Map<String, Value>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::CloudUpdate)?;
    check("cloud", reference)?;
    let endpoint = Endpoint::parse(endpoint).map_err(Refusal::from)?;
    let mut rule = |snapshot: &_| cloud::update(snapshot, &endpoint, expected, &actor);
    Ok(context.stores.catalog.decide_cloud(reference, &mut rule).await?)
}

pub async fn delete(
    context: &Context,
    caller: &Caller,
    reference: &str,
    reason: Option<&str>,
    expected: Expected,
) -> Result<DeletionId, Error> {
    let actor = authorise(caller, Operation::CloudDelete)?;
    check("cloud", reference)?;
    let removal = removal(context, reason, expected)?;
    let mut rule = |snapshot: &_| cloud::delete(snapshot, &removal, &actor);
    context.stores.catalog.decide_cloud(reference, &mut rule).await?;
    Ok(removal.deletion_id)
}
