//! Generators. The text of the key of a new one is in the answer to the apply that made it, and
//! nowhere else.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::error::ErrorKind;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::Terms;
use slipway_core::fleet::generator::{Generator, GeneratorChange};
use slipway_core::ids::GeneratorId;
use slipway_core::secret::Secret;

use super::rows::{names, spec};
use crate::Error;
use crate::files::kind::{Applier, Desired, Document, FileKind, Live};
use crate::fleet::generators::{self, CreateGenerator};

pub(in crate::files) struct Generators;

fn seconds(value: &Value) -> Option<Duration> {
    value.as_u64().map(Duration::from_secs)
}

#[async_trait]
impl FileKind for Generators {
    fn missing(&self) -> ErrorKind {
        ErrorKind::GeneratorNotFound
    }

    fn terms(&self) -> Terms {
        Terms { defaults: spec([("acceptsSecrets", json!(false))]), ..Terms::default() }
    }

    fn needs(&self, document: &Document) -> Vec<Address> {
        let project = document.address.project.iter();
        project.map(|project| Address::new(DocumentKind::Project, project)).collect()
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        let projects = by.projects(wanted).await?;
        let found = by.named::<Generator>(names(wanted)).await?;
        let live = |address: &Address| {
            let project = *projects.get(address.project.as_ref()?)?;
            let is_it =
                |one: &&Generator| one.name.as_str() == address.name && one.project_id == project;
            let generator = found.iter().find(is_it)?;
            let fields = spec([
                ("description", json!(generator.description)),
                ("acceptsSecrets", json!(generator.accepts_secrets)),
                ("retentionSeconds", json!(generator.retention.map(|kept| kept.as_secs()))),
            ]);
            let live = Live::at(address, generator, fields).within(Some(project));
            Some(live.leaving(generator.deletion_id))
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    async fn create(
        &self,
        Applier { context, caller }: Applier<'_>,
        document: &Document,
    ) -> Result<Option<Secret>, Error> {
        let accepts = document.spec.get("acceptsSecrets").and_then(Value::as_bool);
        let input = CreateGenerator {
            project: document.address.project.clone(),
            name: document.address.name.clone(),
            description: document.text("description").map(str::to_owned),
            accepts_secrets: accepts.unwrap_or(false),
            retention: document.spec.get("retentionSeconds").and_then(seconds),
        };
        let (_, key) = generators::create(context, caller, input, None).await?;
        Ok(Some(key))
    }

    async fn change(
        &self,
        Applier { context, caller }: Applier<'_>,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let change = GeneratorChange {
            name: None,
            description: wanted.description(),
            accepts_secrets: wanted.value("acceptsSecrets").and_then(Value::as_bool),
            retention: wanted.value("retentionSeconds").map(seconds),
        };
        let id = GeneratorId::new(wanted.live.subject_id);
        generators::update(context, caller, id, &change, wanted.live.expected()).await
    }
}
