//! Tenant profiles.

use serde_json::Value;
use slipway_core::access::idempotency::Request;
use slipway_core::access::role::Role;
use slipway_core::catalog::Name;
use slipway_core::catalog::name::document;
use slipway_core::ids::TenantProfileId;
use slipway_core::precondition::Expected;
use slipway_core::tenants::profile::{self, NewProfile, ProfileSnapshot, TenantProfile};
use slipway_core::text::InvalidText;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::deletion::request::DeletableKind;
use crate::kind::{self, Named, ShowDeleted, StoredKind};
use crate::ports::KindStore;
use crate::ports::store::Stores;
use crate::{Context, Error};

impl StoredKind for TenantProfile {
    type Key = str;
    type Snapshot = ProfileSnapshot;
    type Filter = ShowDeleted;
    const READ: Operation = Operation::TenantProfileRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.tenants
    }

    /// Everybody may know which profiles there are; the settings say where secrets are. An admin
    /// of one project is none of the installation.
    fn seen_by(mut self, caller: &Caller) -> Option<Self> {
        if caller.role != Role::Admin || caller.project.is_some() {
            self.settings = serde_json::json!({ "engine": self.engine() });
        }
        Some(self)
    }
}

impl Named for TenantProfile {
    fn name(&self) -> &str {
        self.name.as_str()
    }
}

impl DeletableKind for TenantProfile {
    const OPERATION: Operation = Operation::TenantProfileDelete;
}

const MAX_DESCRIPTION: usize = 1_024;

pub async fn create(
    context: &Context,
    caller: &Caller,
    name: &str,
    description: &str,
    settings: Value,
    request: Option<Request>,
) -> Result<TenantProfileId, Error> {
    let actor = authorise(caller, Operation::TenantProfileCreate)?;
    let new = NewProfile {
        id: TenantProfileId::new(context.entropy.uuid()),
        name: Name::parse("name", name)?,
        description: checked(description)?,
        settings,
    };
    context.tenants.check(&new.settings)?;
    let rule = |snapshot: &_| profile::create(snapshot, &new, &actor);
    kind::create::<TenantProfile>(context, request, new.id, new.name.as_str(), rule).await
}

pub async fn update(
    context: &Context,
    caller: &Caller,
    reference: &str,
    description: Option<&str>,
    settings: Option<&Value>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::TenantProfileUpdate)?;
    description.map(checked).transpose()?;
    if let Some(settings) = settings {
        context.tenants.check(settings)?;
    }
    let mut rule =
        |snapshot: &_| profile::update(snapshot, description, settings, expected, &actor);
    kind::change::<TenantProfile>(context, reference, &mut rule).await
}

fn checked(description: &str) -> Result<String, InvalidText> {
    document("description", description, MAX_DESCRIPTION)
}
