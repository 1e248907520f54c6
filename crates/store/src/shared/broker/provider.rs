//! Loads the facts of the clouds that composites are made in, for the snapshots
//! of a whole batch by one statement. Only engine `crossplane` renders anything
//! from them, so batches of other engines skip the query.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};
use slipway_core::broker::snapshot::{LabelFact, ProviderFacts};
use slipway_core::catalog::label;
use slipway_core::ids::{CloudCredentialId, CloudId};
use slipway_core::text::Labels;
use sqlx::Row as _;
use uuid::Uuid;

use super::{Connection, Row, rows};
use crate::fault::Fault;
use crate::id_list::IdList;

/// What resources of one project and one credential share.
struct Shared {
    /// Without labels: those belong to the resource.
    facts: ProviderFacts,
    project_labels: Labels,
    /// The keys of the labels that become tags.
    propagating: Vec<String>,
}

/// The key is project and credential.
#[derive(Default)]
pub(crate) struct Providers(HashMap<(Uuid, Uuid), Result<Shared, Fault>>);

impl Providers {
    /// The facts of these attempts. A deleted credential or cloud is included:
    /// what was made with it is still rendered.
    pub(crate) async fn of(
        connection: &mut Connection,
        attempts: IdList,
    ) -> Result<Self, sqlx::Error> {
        if attempts.0.is_empty() {
            return Ok(Self::default());
        }
        // A key consists of letters, digits and - _ . / and has no comma, see `Labels`.
        let found = sqlx::query(sql!(
            "SELECT a.project_id, a.cloud_credential_id, k.kv_mount, k.kv_path, \
             c.id AS cloud_id, c.provider, c.endpoint, p.labels, \
             (SELECT string_agg(key, ',') FROM label_definitions \
             WHERE propagate <> 0 AND deleted_at IS NULL) AS propagating \
             FROM (SELECT DISTINCT project_id, cloud_credential_id FROM provisioned_resources \
             WHERE id ",
            (one_of "$1"),
            ") a JOIN cloud_credentials k ON k.id = a.cloud_credential_id \
             JOIN clouds c ON c.id = k.cloud_id JOIN projects p ON p.id = a.project_id"
        ))
        .bind(attempts)
        .fetch_all(connection)
        .await?;
        let by_key = found.iter().map(|row| {
            let key = (row.try_get("project_id")?, row.try_get("cloud_credential_id")?);
            Ok((key, shared(row)))
        });
        by_key.collect::<Result<_, sqlx::Error>>().map(Self)
    }

    /// The facts for a resource with these labels. `None` if they were not loaded.
    pub(crate) fn facts(
        &self,
        project: Uuid,
        credential: Uuid,
        labels: &Labels,
    ) -> Result<Option<Arc<ProviderFacts>>, Fault> {
        let Some(shared) = self.0.get(&(project, credential)) else { return Ok(None) };
        let shared = shared.as_ref().map_err(Clone::clone)?;
        let in_effect = label::effective(&shared.project_labels, labels);
        let fact = |(key, found): (&str, label::Effective<'_>)| {
            let propagate = shared.propagating.iter().any(|known| known == key);
            (key.to_owned(), LabelFact { value: found.value.to_owned(), propagate })
        };
        let labels = in_effect.into_iter().map(fact).collect();
        Ok(Some(Arc::new(ProviderFacts { labels, ..shared.facts.clone() })))
    }
}

fn shared(row: &Row) -> Result<Shared, Fault> {
    let propagating: Option<String> = rows::get(row, "propagating")?;
    let propagating = propagating.unwrap_or_default();
    Ok(Shared {
        facts: ProviderFacts {
            cloud_id: CloudId::new(rows::get(row, "cloud_id")?),
            provider: rows::get(row, "provider")?,
            endpoint: rows::json::<Map<String, Value>>(row, "endpoint")?,
            credential_id: CloudCredentialId::new(rows::get(row, "cloud_credential_id")?),
            kv_mount: rows::get(row, "kv_mount")?,
            kv_path: rows::get(row, "kv_path")?,
            labels: BTreeMap::new(),
        },
        project_labels: rows::json(row, "labels")?,
        propagating: propagating.split(',').map(str::to_owned).collect(),
    })
}
