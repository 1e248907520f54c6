//! Blueprints and their versions.

use slipway_core::access::idempotency::{Entry, Request};
use slipway_core::catalog::Name;
use slipway_core::catalog::blueprint::{
    self, Blueprint, BlueprintSnapshot, NewBlueprint, PublishedVersion, SubmittedContent,
    VersionContent,
};
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::catalog::name::{document, line};
use slipway_core::commit::Commit;
use slipway_core::deletion::protection;
use slipway_core::error::{ErrorKind, Refusal, or_fault};
use slipway_core::ids::{BlueprintId, BlueprintVersionId, ClusterId};
use slipway_core::placement::definitions::DefinitionsView;
use slipway_core::precondition::Expected;
use slipway_core::text::InvalidText;
use slipway_render::pair;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::idempotency::{bind, record};
use crate::catalog::port::BlueprintKey;
use crate::deletion::request::DeletableKind;
use crate::kind::{self, ShowDeleted, StoredKind, check, missing};
use crate::ports::store::{Page, Rule, Stores};
use crate::ports::{KindStore, Listed};
use crate::{Context, Error};

impl StoredKind for Blueprint {
    type Key = BlueprintKey;
    type Snapshot = BlueprintSnapshot;
    type Filter = ShowDeleted;
    const READ: Operation = Operation::BlueprintRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.catalog
    }
}

/// With its versions, while no resource is made from one.
impl DeletableKind for Blueprint {
    const OPERATION: Operation = Operation::BlueprintDelete;
}

const MAX_DISPLAY_NAME: usize = 128;
const MAX_DESCRIPTION: usize = 4_096;

/// A blueprint as received, unchecked.
#[derive(Debug, Clone)]
pub struct CreateBlueprint {
    pub slug: String,
    pub display_name: String,
    pub description: String,
    pub engine: String,
    /// Whether it is protected from deletion.
    pub protected: bool,
}

pub async fn create(
    context: &Context,
    caller: &Caller,
    input: CreateBlueprint,
    request: Option<Request>,
) -> Result<BlueprintId, Error> {
    let actor = authorise(caller, Operation::BlueprintCreate)?;
    let mut faults = Vec::new();
    let checked = (
        or_fault(Name::parse("slug", &input.slug), &mut faults),
        or_fault(display_name(&input.display_name), &mut faults),
        or_fault(description(&input.description), &mut faults),
        or_fault(Engine::parse_offered("engine", &input.engine), &mut faults),
    );
    let (Some(slug), Some(display_name), Some(description), Some(engine)) = checked else {
        // What is missing left a fault.
        Refusal::all(faults)?;
        return Err(Refusal::new(ErrorKind::Internal, "a blueprint was checked in part").into());
    };
    let id = BlueprintId::new(context.entropy.uuid());
    let new = NewBlueprint { id, slug, display_name, description, engine };
    let key = BlueprintKey { blueprint: new.slug.to_string(), version: None };
    let rule = |snapshot: &BlueprintSnapshot| {
        let commit = blueprint::create(snapshot, &new, &actor)?;
        let (subject, name, now) = (new.id.into(), new.slug.as_str(), snapshot.now);
        Ok(match input.protected {
            true => protection::declared(commit, subject, None, name, &actor, now),
            false => commit,
        })
    };
    kind::create::<Blueprint>(context, request, new.id, &key, rule).await
}

pub async fn update(
    context: &Context,
    caller: &Caller,
    reference: &str,
    new_display_name: Option<&str>,
    new_description: Option<&str>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::BlueprintUpdate)?;
    new_display_name.map(display_name).transpose()?;
    new_description.map(description).transpose()?;
    let mut rule = |snapshot: &_| {
        blueprint::update(snapshot, new_display_name, new_description, expected, &actor)
    };
    decide(context, reference, None, &mut rule).await
}

async fn decide(
    context: &Context,
    reference: &str,
    version: Option<&str>,
    rule: &mut Rule<'_, BlueprintSnapshot>,
) -> Result<(), Error> {
    check("blueprint", reference)?;
    let version = version.map(str::to_owned);
    let key = BlueprintKey { blueprint: reference.to_owned(), version };
    Ok(context.stores.kind::<Blueprint>().decide(&key, rule).await?)
}

fn display_name(text: &str) -> Result<String, InvalidText> {
    line("display_name", text, 1, MAX_DISPLAY_NAME)
}

fn description(text: &str) -> Result<String, InvalidText> {
    document("description", text, MAX_DESCRIPTION)
}

/// Publishes a version, or returns the identical one that is already published.
pub async fn publish(
    context: &Context,
    caller: &Caller,
    reference: &str,
    given: SubmittedContent,
    request: Option<Request>,
) -> Result<BlueprintVersionId, Error> {
    let actor = authorise(caller, Operation::BlueprintPublish)?;
    let undeclared = given.parameters.is_none();
    let (content, faults) = VersionContent::draft(given);
    // Checked before the transaction, since it takes a while; whether the
    // result matters depends on the engine, which is known only inside.
    let of_xrd = undeclared.then(|| pair::parameters_of_xrd(&content.xrd)).transpose();
    let (of_xrd, documents) = match (of_xrd, pair::check(&content)) {
        (Ok(of_xrd), documents) => (of_xrd, documents),
        (Err(more), documents) => {
            (None, Err(documents.err().into_iter().flatten().chain(more).collect()))
        }
    };
    let documents = documents.map_err(|faults: Vec<_>| pair::refusal(&faults));
    let fresh = BlueprintVersionId::new(context.entropy.uuid());
    let record = record(context, request, fresh.as_uuid());
    let mut id = fresh;
    let mut rule = |snapshot: &BlueprintSnapshot| -> Result<Commit, Refusal> {
        let taken = of_xrd.as_ref().map(|of| blueprint::taking_parameters(snapshot, &content, of));
        let content = taken.as_ref().unwrap_or(&content);
        let published = blueprint::publish(snapshot, fresh, content, &faults, &documents, &actor)?;
        id = published.id;
        // The key is bound to the published version, whoever published it.
        let record =
            record.as_ref().map(|record| Entry { subject_id: id.as_uuid(), ..record.clone() });
        Ok(bind(published.commit, record.as_ref()))
    };
    decide(context, reference, Some(&content.version), &mut rule).await?;
    if content.install_definitions {
        context.wakes.wake_placement();
    }
    Ok(id)
}

pub async fn version(
    context: &Context,
    caller: &Caller,
    reference: &str,
    wanted: &str,
    show_deleted: bool,
) -> Result<(Blueprint, PublishedVersion), Error> {
    let blueprint = kind::fetch::<Blueprint>(context, caller, reference, show_deleted).await?;
    check("version", wanted)?;
    let found = context.stores.catalog.version_fetch(blueprint.id, wanted).await?;
    let missing = || missing(ErrorKind::BlueprintVersionNotFound, "version", wanted);
    Ok((blueprint, found.ok_or_else(missing)?))
}

pub async fn versions(
    context: &Context,
    caller: &Caller,
    reference: &str,
    page: Page<BlueprintVersionId>,
    show_deleted: bool,
) -> Result<(Blueprint, Listed<PublishedVersion>), Error> {
    let blueprint = kind::fetch::<Blueprint>(context, caller, reference, show_deleted).await?;
    let found = context.stores.catalog.version_list(blueprint.id, page).await?;
    Ok((blueprint, found))
}

/// The clusters that need its definitions or have them, with their state there.
pub async fn definitions(
    context: &Context,
    caller: &Caller,
    reference: &str,
    page: Page<ClusterId>,
    show_deleted: bool,
) -> Result<(Blueprint, Listed<DefinitionsView>), Error> {
    let blueprint = kind::fetch::<Blueprint>(context, caller, reference, show_deleted).await?;
    let found = context.stores.placement.definitions_list(blueprint.id, page).await?;
    Ok((blueprint, found))
}

/// Stops new declarations from the version; existing resources continue.
pub async fn retire(
    context: &Context,
    caller: &Caller,
    reference: &str,
    wanted: &str,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::BlueprintRetire)?;
    check("version", wanted)?;
    let mut rule = |snapshot: &_| blueprint::retire(snapshot, expected, &actor);
    decide(context, reference, Some(wanted), &mut rule).await?;
    // Another version may be the one to install now.
    context.wakes.wake_placement();
    Ok(())
}
