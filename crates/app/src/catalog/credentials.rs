//! Credentials, and which projects may use them.

use slipway_core::access::idempotency::Request;
use slipway_core::catalog::Name;
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::credential::{
    self, Credential, CredentialAssignment, CredentialSnapshot, NewCredential,
};
use slipway_core::catalog::project::Project;
use slipway_core::ids::CloudCredentialId;
use slipway_core::precondition::Expected;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::catalog::port::{CredentialFilter, CredentialKey};
use crate::deletion::request::DeletableKind;
use crate::kind::{self, StoredKind, check};
use crate::ports::store::{Page, Stores};
use crate::ports::{KindStore, Listed};
use crate::{Context, Error};

/// Its name is unique within its cloud only, so its id refers to it.
impl StoredKind for Credential {
    type Key = CredentialKey;
    type Snapshot = CredentialSnapshot;
    type Filter = CredentialFilter;
    const READ: Operation = Operation::CredentialRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.catalog
    }
}

impl DeletableKind for Credential {
    const OPERATION: Operation = Operation::CredentialDelete;
}

/// A credential as received, unchecked.
#[derive(Debug, Clone)]
pub struct CreateCredential {
    /// Name or id.
    pub cloud: String,
    pub name: String,
    pub kv_mount: Option<String>,
    pub kv_path: Option<String>,
}

pub async fn create(
    context: &Context,
    caller: &Caller,
    input: CreateCredential,
    request: Option<Request>,
) -> Result<CloudCredentialId, Error> {
    let actor = authorise(caller, Operation::CredentialCreate)?;
    check("cloud", &input.cloud)?;
    let new = NewCredential {
        id: CloudCredentialId::new(context.entropy.uuid()),
        name: Name::parse("name", &input.name)?,
        kv_mount: input.kv_mount,
        kv_path: input.kv_path,
    };
    let key = CredentialKey::New { cloud: input.cloud, name: new.name.to_string() };
    let rule = |snapshot: &_| credential::create(snapshot, &new, &actor);
    kind::create::<Credential>(context, request, new.id, &key, rule).await
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    filter: &CredentialFilter,
    page: Page<CloudCredentialId>,
) -> Result<Listed<Credential>, Error> {
    authorise(caller, Operation::CredentialRead)?;
    filter.name.as_ref().map_or(Ok(()), |name| check("name", name))?;
    if let Some(cloud) = &filter.cloud {
        kind::known::<Cloud>(context, caller, cloud).await?;
    }
    kind::list::<Credential>(context, caller, filter, page).await
}

pub async fn update(
    context: &Context,
    caller: &Caller,
    id: CloudCredentialId,
    kv_mount: Option<&str>,
    kv_path: Option<&str>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::CredentialUpdate)?;
    let mut rule = |snapshot: &_| credential::update(snapshot, kv_mount, kv_path, expected, &actor);
    let store = context.stores.kind::<Credential>();
    Ok(store.decide(&CredentialKey::Existing(id), &mut rule).await?)
}

/// Lets a project use a credential.
pub async fn assign(
    context: &Context,
    caller: &Caller,
    project: &str,
    credential: CloudCredentialId,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::CredentialAssign)?;
    check("project", project)?;
    let mut rule = |snapshot: &_| credential::assign(snapshot, &actor);
    Ok(context.stores.catalog.decide_credential_assignment(project, credential, &mut rule).await?)
}

pub async fn withdraw(
    context: &Context,
    caller: &Caller,
    project: &str,
    credential: CloudCredentialId,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::CredentialWithdraw)?;
    check("project", project)?;
    let mut rule = |snapshot: &_| credential::withdraw(snapshot, &actor);
    Ok(context.stores.catalog.decide_credential_assignment(project, credential, &mut rule).await?)
}

/// The credentials that a project may use.
pub async fn assigned(
    context: &Context,
    caller: &Caller,
    project: &str,
    page: Page<CloudCredentialId>,
) -> Result<Listed<(CredentialAssignment, Credential)>, Error> {
    authorise(caller, Operation::CredentialReadAssigned)?;
    let project = kind::fetch::<Project>(context, caller, project, false).await?;
    Ok(context.stores.catalog.credential_assignment_list(project.id, page).await?)
}
