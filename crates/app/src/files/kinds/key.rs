//! API keys. The text of a key is in the answer to the apply that made it, and nowhere else.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::access::api_key::ApiKey;
use slipway_core::error::ErrorKind;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::Terms;
use slipway_core::secret::Secret;

use super::rows::{names, spec};
use crate::Error;
use crate::access::keys;
use crate::files::kind::{Applier, Document, FileKind, Live};

/// Every field stays as it was made.
pub(in crate::files) struct Keys;

#[async_trait]
impl FileKind for Keys {
    fn missing(&self) -> ErrorKind {
        ErrorKind::KeyNotFound
    }

    fn terms(&self) -> Terms {
        Terms {
            computed: &["spec.owner", "spec.ttlSeconds"],
            fixed: &["spec.role", "spec.owner", "spec.ttlSeconds"],
            ..Terms::default()
        }
    }

    fn needs(&self, document: &Document) -> Vec<Address> {
        let project = document.address.project.iter();
        project.map(|project| Address::new(DocumentKind::Project, project)).collect()
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        let projects = by.projects(wanted).await?;
        let found = by.named::<ApiKey>(names(wanted)).await?;
        let live = |address: &Address| {
            let project = match &address.project {
                Some(name) => Some(*projects.get(name)?),
                None => None,
            };
            let is_it = |key: &&ApiKey| key.name == address.name && key.project_id == project;
            let key = found.iter().find(is_it)?;
            let lives = key.expires_at.map(|end| end.since(key.created_at).as_secs());
            let fields = spec([
                ("role", json!(key.role)),
                ("owner", json!(key.owner)),
                ("ttlSeconds", json!(lives)),
            ]);
            Some(Live::at(address, key, fields).within(project))
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    async fn create(
        &self,
        Applier { context, caller }: Applier<'_>,
        document: &Document,
    ) -> Result<Option<Secret>, Error> {
        let input = keys::CreateKey {
            name: document.address.name.clone(),
            role: document.required("role"),
            owner: document.text("owner").map(str::to_owned),
            project: document.address.project.clone(),
            ttl_seconds: document.spec.get("ttlSeconds").and_then(Value::as_u64),
        };
        let (_, secret) = keys::create(context, caller, input, None).await?;
        Ok(Some(secret))
    }
}
