//! Generators.

use std::time::Duration;

use slipway_core::access::api_key::Principal;
use slipway_core::access::idempotency::Request;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::generator::{
    self, Generator, GeneratorChange, GeneratorSnapshot, NewGenerator,
};
use slipway_core::fleet::{FleetName, text as texts};
use slipway_core::ids::{DeletionId, GeneratorId};
use slipway_core::precondition::Expected;
use slipway_core::secret::Secret;

use super::port::{FleetFilter, GeneratorKey};
use super::principal::{self, owns};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::deletion::request::{self, DeletableKind, DeleteOptions};
use crate::kind::{self, StoredKind, check};
use crate::ports::store::{Page, Stores};
use crate::ports::{KindStore, Listed};
use crate::{Context, Error};

/// Its name is unique within its project only, so its id refers to it.
impl StoredKind for Generator {
    type Key = GeneratorKey;
    type Snapshot = GeneratorSnapshot;
    type Filter = FleetFilter;
    const READ: Operation = Operation::FleetOwnRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.fleet
    }

    fn seen_by(self, caller: &Caller) -> Option<Self> {
        (caller.reaches(self.project_id) && owns(caller, Some(self.id))).then_some(self)
    }
}

impl DeletableKind for Generator {
    const OPERATION: Operation = Operation::FleetGeneratorDelete;
}

/// A generator as received, unchecked.
#[derive(Debug, Clone, Default)]
pub struct CreateGenerator {
    /// Name or id; `default` or the caller's own if not said.
    pub project: Option<String>,
    pub name: String,
    pub description: Option<String>,
    pub accepts_secrets: bool,
    pub retention: Option<Duration>,
}

/// With its key, whose text only this answer has.
pub async fn create(
    context: &Context,
    caller: &Caller,
    input: CreateGenerator,
    request: Option<Request>,
) -> Result<(GeneratorId, Secret), Error> {
    let actor = authorise(caller, Operation::FleetGeneratorCreate)?;
    let project = principal::project(caller, input.project);
    check("project", &project)?;
    let new = NewGenerator {
        id: GeneratorId::new(context.entropy.uuid()),
        name: FleetName::parse("name", &input.name)?,
        description: input.description.as_deref().map(texts::description).transpose()?,
        accepts_secrets: input.accepts_secrets,
        retention: input.retention,
    };
    let (text, first) = principal::draw_key(context, Principal::Generator(new.id))?;
    let key = GeneratorKey::New { project, name: new.name.to_string() };
    let rule = |snapshot: &GeneratorSnapshot| {
        let project = snapshot.project.filter(|project| caller.reaches(*project));
        let reached = GeneratorSnapshot { project, ..snapshot.clone() };
        let made = generator::create(&reached, &new, &actor)?;
        principal::with_key(made, &first, project, snapshot.now, &actor)
    };
    let id = kind::create::<Generator>(context, request, new.id, &key, rule).await?;
    context.wakes.wake();
    Ok((id, text))
}

pub async fn fetch(
    context: &Context,
    caller: &Caller,
    id: GeneratorId,
    show_deleted: bool,
) -> Result<Generator, Error> {
    kind::fetch(context, caller, &id.to_string(), show_deleted).await
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    filter: &FleetFilter,
    page: Page<GeneratorId>,
) -> Result<Listed<Generator>, Error> {
    let project = caller.project.or(filter.project);
    kind::list(context, caller, &FleetFilter { project, ..filter.clone() }, page).await
}

/// A generator neither lets Secrets in by itself nor says how long it is kept.
pub async fn update(
    context: &Context,
    caller: &Caller,
    id: GeneratorId,
    change: &GeneratorChange,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::FleetGeneratorUpdate)?;
    let before = fetch(context, caller, id, false).await?;
    let opens = change.accepts_secrets.is_some_and(|accepts| accepts != before.accepts_secrets);
    let keeps = change.retention.is_some_and(|retention| retention != before.retention);
    for (changes, field) in [(opens, "accepts_secrets"), (keeps, "retention")] {
        if changes && caller.principal != Principal::Holder {
            let message = format!("a generator does not change `{field}` itself; ask an admin");
            return Err(Refusal::new(ErrorKind::Forbidden, message).at(field).into());
        }
    }
    let mut rule = |snapshot: &_| generator::update(snapshot, change, expected, &actor);
    let store = context.stores.kind::<Generator>();
    Ok(store.decide(&GeneratorKey::Existing(id), &mut rule).await?)
}

/// With its stacks and templates.
pub async fn delete(
    context: &Context,
    caller: &Caller,
    id: GeneratorId,
    options: DeleteOptions<'_>,
) -> Result<DeletionId, Error> {
    authorise(caller, Operation::FleetGeneratorDelete)?;
    fetch(context, caller, id, false).await?;
    request::delete::<Generator>(context, caller, &GeneratorKey::Existing(id), options).await
}

/// The text of its key, which replaces the one before.
pub async fn key(context: &Context, caller: &Caller, id: GeneratorId) -> Result<Secret, Error> {
    let actor = authorise(caller, Operation::FleetKeyRotate)?;
    let found = fetch(context, caller, id, false).await?;
    principal::key(context, Principal::Generator(id), found.project_id, &actor).await
}
