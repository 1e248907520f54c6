//! Templates. A document stands for all versions of a name: it shows the newest, and a change
//! makes another one. The oldest that is left identifies the object, so that a new version does
//! not make it another object.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::error::ErrorKind;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::Terms;
use slipway_core::fleet::template::Template;
use slipway_core::ids::ProjectId;
use slipway_core::precondition::Expected;
use slipway_core::secret::Secret;
use uuid::Uuid;

use super::rows::{names, spec};
use super::sets::{self, project_of};
use crate::Error;
use crate::files::kind::{Applier, Desired, Document, FileKind, Live};
use crate::fleet::templates::{self, CreateTemplate};

pub(in crate::files) struct Templates;

/// The schema of a template that says nothing about its parameters.
fn anything() -> Value {
    json!({ "type": "object" })
}

#[async_trait]
impl FileKind for Templates {
    fn missing(&self) -> ErrorKind {
        ErrorKind::TemplateNotFound
    }

    fn terms(&self) -> Terms {
        Terms {
            defaults: spec([("parametersSchema", anything())]),
            fixed: &["spec.generator"],
            // A version without a description takes over the one before.
            computed: &["spec.description"],
        }
    }

    fn needs(&self, document: &Document) -> Vec<Address> {
        let project = document.address.project.clone().unwrap_or_default();
        let generator = document
            .text("generator")
            .map(|name| Address::new(DocumentKind::Generator, name).of_project(&project));
        std::iter::once(Address::new(DocumentKind::Project, &project)).chain(generator).collect()
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        let projects = by.projects(wanted).await?;
        let found = by.named::<Template>(names(wanted)).await?;
        let owners: Vec<Uuid> =
            found.iter().filter_map(|one| one.generator_id).map(|id| id.as_uuid()).collect();
        let owners = by.context.stores.access.names(&owners).await?;
        let live = |address: &Address| {
            let project = *projects.get(address.project.as_ref()?)?;
            let versions = versions(&found, address, project);
            let (oldest, newest) = (versions.first()?, versions.last()?);
            let schema: Value =
                serde_json::from_str(&newest.text.parameters_schema).unwrap_or_default();
            let owner = newest.generator_id.and_then(|id| owners.get(&id.as_uuid()));
            let fields = spec([
                ("generator", json!(owner)),
                ("description", json!(newest.description)),
                ("content", json!(newest.text.content)),
                ("parametersSchema", schema),
            ]);
            let live = Live::at(address, *oldest, fields).within(Some(project));
            Some(live.leaving(newest.deletion_id))
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    async fn create(&self, by: Applier<'_>, document: &Document) -> Result<Option<Secret>, Error> {
        let project = project_of(by, &document.address).await?;
        let owner: Vec<String> =
            document.text("generator").map(str::to_owned).into_iter().collect();
        let owner = sets::generators(by, project, &owner).await?;
        let schema = document.spec.get("parametersSchema").cloned().unwrap_or_else(anything);
        let input = CreateTemplate {
            generator: owner.first().copied(),
            project: document.address.project.clone(),
            name: document.address.name.clone(),
            description: document.text("description").map(str::to_owned),
            content: document.required("content"),
            parameters_schema: schema.to_string(),
        };
        templates::create(by.context, by.caller, input, None).await?;
        Ok(None)
    }

    async fn change(&self, by: Applier<'_>, wanted: Desired<'_>) -> Result<(), Error> {
        let Applier { context, caller } = by;
        let address = &wanted.live.address;
        let found = by.named::<Template>([address.name.clone()]).await?;
        let Some(project) = wanted.live.project_id else { return Ok(()) };
        let versions = versions(&found, address, project);
        let Some(newest) = versions.last() else { return Ok(()) };
        let after = |name: &str| {
            let path = format!("spec.{name}");
            wanted.target.get(&path).or(wanted.defaults.get(&path)).cloned()
        };
        let content = after("content");
        let content = content.as_ref().and_then(Value::as_str).unwrap_or_default();
        let schema = after("parametersSchema").unwrap_or_else(anything).to_string();
        let description = after("description");
        let description = description.as_ref().and_then(Value::as_str);
        let (text, expected) = ((content, schema.as_str()), Expected::Exactly(newest.revision));
        templates::revise(context, caller, newest.id, description, text, expected).await?;
        Ok(())
    }
}

/// The versions that an address means, the oldest first: those of the whole project, or of the
/// first generator that has some.
fn versions<'t>(found: &'t [Template], address: &Address, project: ProjectId) -> Vec<&'t Template> {
    let fits = |one: &&Template| one.name.as_str() == address.name && one.project_id == project;
    let owner = found.iter().filter(fits).map(|one| one.generator_id.map(|id| id.as_uuid())).min();
    let mut versions: Vec<&Template> = found
        .iter()
        .filter(fits)
        .filter(|one| Some(one.generator_id.map(|id| id.as_uuid())) == owner)
        .collect();
    versions.sort_by_key(|one| one.version);
    versions
}
