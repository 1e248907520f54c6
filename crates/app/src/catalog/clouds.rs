//! Clouds.

use serde_json::{Map, Value};
use slipway_core::access::idempotency::Request;
use slipway_core::catalog::Name;
use slipway_core::catalog::cloud::{self, Cloud, CloudSnapshot, Endpoint, NewCloud};
use slipway_core::ids::CloudId;
use slipway_core::precondition::Expected;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::deletion::request::DeletableKind;
use crate::kind::{self, Named, ShowDeleted, StoredKind};
use crate::ports::KindStore;
use crate::ports::store::Stores;
use crate::{Context, Error};

impl StoredKind for Cloud {
    type Key = str;
    type Snapshot = CloudSnapshot;
    type Filter = ShowDeleted;
    const READ: Operation = Operation::CloudRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.catalog
    }

    /// A caller bound to a project may see which clouds exist, but not how to reach them.
    fn seen_by(self, caller: &Caller) -> Option<Self> {
        Some(match caller.project {
            Some(_) => Self { endpoint: Endpoint::default(), ..self },
            None => self,
        })
    }
}

impl Named for Cloud {
    fn name(&self) -> &str {
        self.name.as_str()
    }
}

impl DeletableKind for Cloud {
    const OPERATION: Operation = Operation::CloudDelete;
}

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
        name: Name::parse("name", name)?,
        provider: Name::parse("provider", provider)?,
        endpoint: Endpoint::parse(endpoint)?,
    };
    let rule = |snapshot: &_| cloud::create(snapshot, &new, &actor);
    kind::create::<Cloud>(context, request, new.id, new.name.as_str(), rule).await
}

pub async fn update(
    context: &Context,
    caller: &Caller,
    reference: &str,
    endpoint: Map<String, Value>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::CloudUpdate)?;
    let endpoint = Endpoint::parse(endpoint)?;
    let mut rule = |snapshot: &_| cloud::update(snapshot, &endpoint, expected, &actor);
    kind::change::<Cloud>(context, reference, &mut rule).await
}
