//! Stacks. Content is known by its checksum: an object is submitted if it differs from the
//! newest, and no difference shows it.

use async_trait::async_trait;
use serde_json::json;
use slipway_core::error::ErrorKind;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::{Fields, Terms};
use slipway_core::fleet::content::Content;
use slipway_core::fleet::object::Submitted;
use slipway_core::fleet::stack::{Stack, StackChange};
use slipway_core::ids::StackId;
use slipway_core::secret::Secret;
use uuid::Uuid;

use super::rows::{names, spec};
use super::sets::{self, Overtaken, TagChanges, Tags, project_of};
use crate::Error;
use crate::access::authorise::{Operation, authorise};
use crate::files::kind::{Applier, Desired, Document, FileKind, Live, OBJECTS, shown};
use crate::fleet::objects;
use crate::fleet::stacks::{self, CreateStack};

pub(in crate::files) struct Stacks;

#[async_trait]
impl FileKind for Stacks {
    fn missing(&self) -> ErrorKind {
        ErrorKind::StackNotFound
    }

    fn terms(&self) -> Terms {
        Terms {
            defaults: spec([("labels", json!([]))]),
            computed: &[OBJECTS],
            fixed: &["spec.generator"],
        }
    }

    fn needs(&self, document: &Document) -> Vec<Address> {
        let project = document.address.project.clone().unwrap_or_default();
        let generator = Address::new(DocumentKind::Generator, document.required("generator"));
        vec![Address::new(DocumentKind::Project, &project), generator.of_project(project)]
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        let projects = by.projects(wanted).await?;
        let found = by.named::<Stack>(names(wanted)).await?;
        let ids: Vec<Uuid> = found.iter().map(|stack| stack.id.as_uuid()).collect();
        let owners: Vec<Uuid> = found.iter().map(|stack| stack.generator_id.as_uuid()).collect();
        let owners = by.context.stores.access.names(&owners).await?;
        let mut tags = Tags::read(by, &ids).await?;
        let heads = match ids.is_empty() {
            true => Vec::new(),
            false => by.context.stores.fleet.heads_of(&ids).await?,
        };
        let live = |address: &Address| {
            let project = *projects.get(address.project.as_ref()?)?;
            let is_it =
                |one: &&Stack| one.name.as_str() == address.name && one.project_id == project;
            let stack = found.iter().find(is_it)?;
            let mut fields = spec([
                ("generator", json!(owners.get(&stack.generator_id.as_uuid()))),
                ("description", json!(stack.description)),
            ]);
            fields.extend(tags.fields(stack.id.as_uuid()));
            let head = heads.iter().find(|head| head.stack_id == stack.id && !head.is_marker);
            fields.extend(head.map(|head| (OBJECTS.to_owned(), shown(&head.checksum, head.bytes))));
            let live = Live::at(address, stack, fields).within(Some(project));
            Some(live.leaving(stack.deletion_id))
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    /// The content, unless it has a Secret with values: these are no part of a document.
    async fn show(&self, by: Applier<'_>, live: &mut Live) -> Result<(), Error> {
        let may_read = authorise(by.caller, Operation::FleetObjectRead).is_ok();
        if !may_read || !live.fields.contains_key(OBJECTS) {
            return Ok(());
        }
        let heads = by.context.stores.fleet.heads_of(&[live.subject_id]).await?;
        let Some(head) = heads.first().filter(|head| !head.is_marker) else { return Ok(()) };
        let Some(object) = by.context.stores.fleet.object_fetch(head.object_id).await? else {
            return Ok(());
        };
        let is_public = Content::parse(&object.content).is_ok_and(|content| !content.has_secret());
        live.content = is_public.then_some(object.content);
        Ok(())
    }

    async fn create(&self, by: Applier<'_>, document: &Document) -> Result<Option<Secret>, Error> {
        let Applier { context, caller } = by;
        // Before anything is written.
        check(document)?;
        let project = project_of(by, &document.address).await?;
        let owner = sets::generators(by, project, &[document.required("generator")]).await?;
        let Some(generator) = owner.first().copied() else { return Ok(None) };
        let input = CreateStack {
            generator,
            name: document.address.name.clone(),
            description: document.text("description").map(str::to_owned),
        };
        let id = stacks::create(context, caller, input, None).await?;
        let mut overtaken = Overtaken::default();
        TagChanges::of_new(document).add(by, id.into(), &mut overtaken).await?;
        submit(by, document, id).await?;
        overtaken.end()?;
        Ok(None)
    }

    async fn verify(
        &self,
        _by: Applier<'_>,
        document: &Document,
        _live: &mut Live,
        _mine: Option<&Fields>,
    ) -> Result<(), Error> {
        check(document)
    }

    async fn change(&self, by: Applier<'_>, wanted: Desired<'_>) -> Result<(), Error> {
        let Applier { context, caller } = by;
        let id = StackId::new(wanted.live.subject_id);
        if let Some(description) = wanted.description() {
            let change = StackChange { description: Some(description), ..StackChange::default() };
            stacks::update(context, caller, id, &change, wanted.live.expected()).await?;
        }
        let (tags, mut overtaken) = (TagChanges::of(&wanted), Overtaken::default());
        tags.add(by, id.into(), &mut overtaken).await?;
        if wanted.changes(OBJECTS) {
            submit(by, wanted.document, id).await?;
        }
        tags.remove(by, id.into(), &mut overtaken).await?;
        overtaken.end()
    }
}

/// Faults of the content.
fn check(document: &Document) -> Result<(), Error> {
    if let Some(content) = &document.content {
        Submitted::parse(content, false).map_err(|refusal| refusal.at(OBJECTS))?;
    }
    Ok(())
}

async fn submit(by: Applier<'_>, document: &Document, id: StackId) -> Result<(), Error> {
    let Some(content) = &document.content else { return Ok(()) };
    objects::submit(by.context, by.caller, id, (content, false), None).await?;
    Ok(())
}
