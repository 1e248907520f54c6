//! API keys. The text of a key is in the answer to the apply that made it, and nowhere else.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::access::api_key::ApiKey;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::Terms;

use super::rows::{named, names, projects, spec};
use crate::access::authorise::Caller;
use crate::access::keys;
use crate::files::kind::{Created, Desired, Document, FileKind, Live};
use crate::{Context, Error};

pub(in crate::files) struct Keys;

#[async_trait]
impl FileKind for Keys {
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

    async fn live(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: &[Address],
    ) -> Result<Vec<Live>, Error> {
        let projects = projects(context, caller, wanted).await?;
        let found = named::<ApiKey>(context, caller, names(wanted)).await?;
        let live = |address: &Address| {
            let project = match &address.project {
                Some(name) => Some(*projects.get(name)?),
                None => None,
            };
            let is_it = |key: &&ApiKey| key.name == address.name && key.project_id == project;
            let key = found.iter().find(is_it)?;
            let lives = key.expires_at.map(|end| end.since(key.created_at).as_secs());
            Some(Live {
                address: address.clone(),
                subject_id: key.id.as_uuid(),
                project_id: project,
                revision: Some(key.revision),
                fields: spec([
                    ("role", Some(json!(key.role))),
                    ("owner", Some(json!(key.owner))),
                    ("ttlSeconds", lives.map(Value::from)),
                ]),
                versions: Vec::new(),
                leaving: false,
            })
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    async fn create(
        &self,
        context: &Context,
        caller: &Caller,
        document: &Document,
    ) -> Result<Created, Error> {
        let input = keys::CreateKey {
            name: document.address.name.clone(),
            role: document.required("role"),
            owner: document.text("owner"),
            project: document.address.project.clone(),
            ttl_seconds: document.spec.get("ttlSeconds").and_then(Value::as_u64),
        };
        let (_, secret) = keys::create(context, caller, input, None).await?;
        Ok(Created { secret: Some(secret) })
    }

    /// Every field stays as it was made.
    async fn change(
        &self,
        _context: &Context,
        _caller: &Caller,
        _wanted: Desired<'_>,
    ) -> Result<(), Error> {
        Ok(())
    }
}
