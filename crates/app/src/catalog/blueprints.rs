//! Blueprints and their versions.

use slipway_core::access::idempotency::{Entry, Request};
use slipway_core::catalog::Name;
use slipway_core::catalog::blueprint::{
    Blueprint, PublishedVersion, SubmittedContent, VersionContent, member,
};
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::catalog::name::{document, line};
use slipway_core::catalog::rules::blueprint::{self, NewBlueprint};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{BlueprintId, BlueprintVersionId, ClusterId};
use slipway_core::placement::definitions::DefinitionsView;
use slipway_core::precondition::Expected;
use slipway_render::pair;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::idempotency::{bind, record};
use crate::catalog::common::{check, missing};
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::{Context, Error};

const MAX_DISPLAY_NAME: usize = 128;
const MAX_DESCRIPTION: usize = 4_096;

/// A blueprint as received, unchecked.
#[derive(Debug, Clone)]
pub struct CreateBlueprint {
    pub slug: String,
    pub display_name: String,
    pub description: String,
    pub engine: String,
}

pub async fn create(
    context: &Context,
    caller: &Caller,
    input: CreateBlueprint,
    request: Option<Request>,
) -> Result<BlueprintId, Error> {
    let actor = authorise(caller, Operation::BlueprintCreate)?;
    let new = NewBlueprint {
        id: BlueprintId::new(context.entropy.uuid()),
        slug: Name::parse("slug", &input.slug).map_err(Refusal::from)?,
        display_name: display_name(&input.display_name)?,
        description: description(&input.description)?,
        engine: member("engine", &input.engine, Engine::ALL, Engine::as_str)?,
    };
    let record = record(context, request, new.id.as_uuid());
    context
        .stores
        .catalog
        .decide_blueprint(new.slug.as_str(), None, &mut |snapshot| {
            Ok(bind(blueprint::create(snapshot, &new, &actor)?, record.as_ref()))
        })
        .await?;
    Ok(new.id)
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
    check("blueprint", reference)?;
    new_display_name.map(display_name).transpose()?;
    new_description.map(description).transpose()?;
    let mut rule = |snapshot: &_| {
        blueprint::update(snapshot, new_display_name, new_description, expected, &actor)
    };
    Ok(context.stores.catalog.decide_blueprint(reference, None, &mut rule).await?)
}

fn display_name(text: &str) -> Result<String, Refusal> {
    Ok(line("display_name", text, 1, MAX_DISPLAY_NAME)?)
}

fn description(text: &str) -> Result<String, Refusal> {
    Ok(document("description", text, MAX_DESCRIPTION)?)
}

pub async fn fetch(
    context: &Context,
    caller: &Caller,
    reference: &str,
) -> Result<Blueprint, Error> {
    authorise(caller, Operation::BlueprintRead)?;
    check("blueprint", reference)?;
    let found = context.stores.catalog.blueprint_fetch(reference).await?;
    missing(found, ErrorKind::BlueprintNotFound, "blueprint", reference)
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    page: Page<BlueprintId>,
) -> Result<Listed<Blueprint>, Error> {
    authorise(caller, Operation::BlueprintRead)?;
    Ok(context.stores.catalog.blueprint_list(page).await?)
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
    check("blueprint", reference)?;
    let content = VersionContent::check(given)?;
    // Checked before the transaction, since it takes a while; whether the
    // result matters depends on the engine, which is known only inside.
    let documents = pair::check(&content).map_err(|faults| pair::refusal(&faults));
    let fresh = BlueprintVersionId::new(context.entropy.uuid());
    let record = record(context, request, fresh.as_uuid());
    let mut id = fresh;
    context
        .stores
        .catalog
        .decide_blueprint(reference, Some(&content.version), &mut |snapshot| {
            let published = blueprint::publish(snapshot, fresh, &content, &documents, &actor)?;
            id = published.id;
            // The key is bound to the published version, whoever published it.
            let record =
                record.as_ref().map(|record| Entry { subject_id: id.as_uuid(), ..record.clone() });
            Ok(bind(published.commit, record.as_ref()))
        })
        .await?;
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
) -> Result<(Blueprint, PublishedVersion), Error> {
    let blueprint = fetch(context, caller, reference).await?;
    check("version", wanted)?;
    let found = context.stores.catalog.version_fetch(blueprint.id, wanted).await?;
    let found = missing(found, ErrorKind::BlueprintVersionNotFound, "version", wanted)?;
    Ok((blueprint, found))
}

pub async fn versions(
    context: &Context,
    caller: &Caller,
    reference: &str,
    page: Page<BlueprintVersionId>,
) -> Result<(Blueprint, Listed<PublishedVersion>), Error> {
    let blueprint = fetch(context, caller, reference).await?;
    let found = context.stores.catalog.version_list(blueprint.id, page).await?;
    Ok((blueprint, found))
}

/// The clusters that need its definitions or have them, with their state there.
pub async fn definitions(
    context: &Context,
    caller: &Caller,
    reference: &str,
    page: Page<ClusterId>,
) -> Result<(Blueprint, Listed<DefinitionsView>), Error> {
    let blueprint = fetch(context, caller, reference).await?;
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
    check("blueprint", reference)?;
    check("version", wanted)?;
    let mut rule = |snapshot: &_| blueprint::retire(snapshot, expected, &actor);
    context.stores.catalog.decide_blueprint(reference, Some(wanted), &mut rule).await?;
    // Another version may be the one to install now.
    context.wakes.wake_placement();
    Ok(())
}
