//! Writes resources and attempts, by sets.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use slipway_core::broker::BrokerWrite;
use slipway_core::broker::attempt::ProvisionedResource;
use slipway_core::broker::resource::Resource;
use slipway_core::commit::Release;
use slipway_core::ids::Revision;
use slipway_core::subject::LoopKind;
use slipway_core::{ErrorKind, Refusal};
use sqlx::Row as _;
use uuid::Uuid;

use super::commit::recheck_micros;
use super::json_values::JsonTime;
use super::{Connection, writes};
use crate::failure::Failure;

/// The broker's writes of a set of commits.
#[derive(Default)]
pub(crate) struct Writes<'a> {
    new_resources: Vec<&'a Resource>,
    resources: Vec<&'a Resource>,
    new_attempts: Vec<&'a ProvisionedResource>,
    /// In the order of their ids, as decisions lock them.
    patches: BTreeMap<Uuid, AttemptPatch<'a>>,
}

/// Everything that one decision writes to the row of its attempt. A decision
/// changes the phase, records the observation and releases the claim: one write
/// of the row instead of three.
#[derive(Debug, Default, Serialize)]
struct AttemptPatch<'a> {
    id: Uuid,
    /// The revision that was read; required for the seven columns below.
    revision: Option<i64>,
    status: Option<&'static str>,
    phase_since: Option<JsonTime>,
    failure_reason: Option<&'a str>,
    bootstrap_token_id: Option<Uuid>,
    deletion_requested_at: Option<JsonTime>,
    unsettled_since: Option<JsonTime>,
    absence_proven_at: Option<JsonTime>,
    // Omitted rather than null: a null would be read as JSON's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<&'a Value>,
    /// The claim to release; required for the two columns below.
    claim_token: Option<i64>,
    micros: Option<i64>,
    failures: Option<i32>,
}

impl<'a> Writes<'a> {
    pub(crate) fn add(&mut self, write: &'a BrokerWrite) {
        match write {
            BrokerWrite::ResourceInsert(resource) => self.new_resources.push(resource),
            BrokerWrite::ResourceUpdate(resource) => self.resources.push(resource),
            BrokerWrite::AttemptInsert(attempt) => self.new_attempts.push(attempt),
            BrokerWrite::AttemptUpdate(attempt) => {
                let patch = self.patch(attempt.id().as_uuid());
                patch.revision = Some(attempt.revision().0);
                patch.status = Some(attempt.phase().as_str());
                patch.phase_since = Some(attempt.phase_since().into());
                patch.failure_reason = attempt.failure_reason();
                patch.bootstrap_token_id = attempt.bootstrap_token_id().map(|id| id.as_uuid());
                patch.deletion_requested_at = attempt.deletion_requested_at().map(Into::into);
                patch.unsettled_since = Some(attempt.unsettled_since().into());
                patch.absence_proven_at = attempt.absence_proven_at().map(Into::into);
            }
            BrokerWrite::ObservedReplace(attempt, observed) => {
                self.patch(attempt.as_uuid()).observed = Some(observed);
            }
        }
    }

    /// Releases the claim together with the other writes of the row.
    pub(crate) fn release(&mut self, release: &Release) {
        let LoopKind::ProvisionedResource = release.subject.kind();
        let patch = self.patch(release.subject.id());
        patch.claim_token = Some(release.claim_token.0);
        patch.micros = recheck_micros(release.recheck);
        patch.failures = Some(release.failures);
    }

    fn patch(&mut self, id: Uuid) -> &mut AttemptPatch<'a> {
        self.patches.entry(id).or_insert_with(|| AttemptPatch { id, ..AttemptPatch::default() })
    }

    /// Resources, and attempts that are new: what nodes and tokens refer to.
    pub(crate) async fn apply_resources(&self, connection: &mut Connection) -> Result<(), Failure> {
        resources_insert(connection, &self.new_resources).await?;
        resources_update(connection, &self.resources).await?;
        attempts_insert(connection, &self.new_attempts).await
    }

    /// Rows of attempts, which refer to tokens.
    pub(crate) async fn apply_attempts(self, connection: &mut Connection) -> Result<(), Failure> {
        let patches: Vec<_> = self.patches.into_values().collect();
        let ids: Vec<_> = patches.iter().map(|patch| patch.id).collect();
        match writes::first_missing(connection, PATCH, &ids, &patches).await? {
            None => Ok(()),
            Some(missing) => refuse_patch(connection, &patches[missing]).await,
        }
    }
}

/// The handle was checked under the lock of its project; the index is the
/// backstop, and ON CONFLICT keeps the transaction usable on both databases.
async fn resources_insert(
    connection: &mut Connection,
    resources: &[&Resource],
) -> Result<(), Failure> {
    const INSERT: &str = concat!(
        "INSERT INTO resources (id, revision, project_id, handle, labels, deletion_id, \
         deleted_at, created_at, updated_at) SELECT given.id, given.revision, given.project_id, \
         given.handle, given.labels, given.deletion_id, given.deleted_at, given.created_at, \
         given.updated_at FROM ",
        rows_from_json!(
            id: uuid,
            revision: bigint,
            project_id: uuid,
            handle: text,
            labels: json,
            deletion_id: uuid,
            deleted_at: time,
            created_at: time,
            updated_at: time,
        ),
        " WHERE true ON CONFLICT DO NOTHING RETURNING id",
    );
    let row = |resource: &Resource| {
        let row = json!({
            "id": resource.id,
            "revision": resource.revision,
            "project_id": resource.project_id,
            "handle": resource.handle.as_str(),
            "labels": resource.labels,
            "deletion_id": resource.deletion_id,
            "deleted_at": resource.deleted_at.map(JsonTime::from),
            "created_at": JsonTime::from(resource.created_at),
            "updated_at": JsonTime::from(resource.updated_at),
        });
        (resource.id.as_uuid(), row)
    };
    writes::write_guarded(connection, INSERT, resources, row, |resource| {
        Refusal::new(
            ErrorKind::HandleTaken,
            format!("handle `{}` is taken in this project; choose another", resource.handle),
        )
        .at("handle")
    })
    .await
}

async fn resources_update(
    connection: &mut Connection,
    resources: &[&Resource],
) -> Result<(), Failure> {
    const UPDATE: &str = concat!(
        "UPDATE resources SET labels = given.labels, deletion_id = given.deletion_id, \
         deleted_at = given.deleted_at, revision = resources.revision + 1, updated_at = ",
        sql!(greatest, "(", now),
        ", updated_at) FROM ",
        rows_from_json!(
            id: uuid,
            revision: bigint,
            labels: json,
            deletion_id: uuid,
            deleted_at: time,
        ),
        " WHERE resources.id = given.id AND resources.revision = given.revision \
         RETURNING resources.id",
    );
    let row = |resource: &Resource| {
        let row = json!({
            "id": resource.id,
            "revision": resource.revision,
            "labels": resource.labels,
            "deletion_id": resource.deletion_id,
            "deleted_at": resource.deleted_at.map(JsonTime::from),
        });
        (resource.id.as_uuid(), row)
    };
    let refusal = |resource: &Resource| writes::stale("resource", resource.id, resource.revision);
    writes::write_guarded(connection, UPDATE, resources, row, refusal).await
}

async fn attempts_insert(
    connection: &mut Connection,
    attempts: &[&ProvisionedResource],
) -> Result<(), Failure> {
    const INSERT: &str = concat!(
        "INSERT INTO provisioned_resources (id, revision, resource_id, project_id, \
         blueprint_version_id, cloud_credential_id, attempt, status, phase_since, \
         failure_reason, xr_name, bootstrap_token_id, parameter_values, \
         deletion_requested_at, unsettled_since, created_at, updated_at, partition) \
         SELECT given.id, given.revision, given.resource_id, given.project_id, \
         given.blueprint_version_id, given.cloud_credential_id, given.attempt, given.status, \
         given.phase_since, given.failure_reason, given.xr_name, given.bootstrap_token_id, \
         given.parameter_values, given.deletion_requested_at, given.unsettled_since, \
         given.created_at, given.updated_at, given.partition FROM ",
        rows_from_json!(
            id: uuid,
            revision: bigint,
            resource_id: uuid,
            project_id: uuid,
            blueprint_version_id: uuid,
            cloud_credential_id: uuid,
            attempt: integer,
            status: text,
            phase_since: time,
            failure_reason: text,
            xr_name: text,
            bootstrap_token_id: uuid,
            parameter_values: json,
            deletion_requested_at: time,
            unsettled_since: time,
            created_at: time,
            updated_at: time,
            partition: uuid,
        ),
    );
    let rows: Vec<_> = attempts
        .iter()
        .map(|attempt| {
            json!({
                "id": attempt.id(),
                "revision": attempt.revision(),
                "resource_id": attempt.resource_id(),
                "project_id": attempt.project_id(),
                "blueprint_version_id": attempt.blueprint_version_id(),
                "cloud_credential_id": attempt.cloud_credential_id(),
                "attempt": attempt.attempt(),
                "status": attempt.phase().as_str(),
                "phase_since": JsonTime::from(attempt.phase_since()),
                "failure_reason": attempt.failure_reason(),
                "xr_name": attempt.xr_name(),
                "bootstrap_token_id": attempt.bootstrap_token_id(),
                "parameter_values": attempt.parameter_values(),
                "deletion_requested_at": attempt.deletion_requested_at().map(JsonTime::from),
                "unsettled_since": JsonTime::from(attempt.unsettled_since()),
                "created_at": JsonTime::from(attempt.created_at()),
                "updated_at": JsonTime::from(attempt.updated_at()),
                "partition": attempt.partition(),
            })
        })
        .collect();
    Ok(writes::write(connection, INSERT, &rows).await?)
}

/// Names the revision if the aggregate is written, and the claim if it is
/// released. The release compares `wake` as every release does.
const PATCH: &str = concat!(
    "UPDATE provisioned_resources SET \
     status = coalesce(given.status, provisioned_resources.status), \
     phase_since = coalesce(given.phase_since, provisioned_resources.phase_since), \
     failure_reason = CASE WHEN given.revision IS NULL \
        THEN provisioned_resources.failure_reason ELSE given.failure_reason END, \
     bootstrap_token_id = CASE WHEN given.revision IS NULL \
        THEN provisioned_resources.bootstrap_token_id ELSE given.bootstrap_token_id END, \
     deletion_requested_at = CASE WHEN given.revision IS NULL \
        THEN provisioned_resources.deletion_requested_at ELSE given.deletion_requested_at END, \
     unsettled_since = CASE WHEN given.revision IS NULL \
        THEN provisioned_resources.unsettled_since ELSE given.unsettled_since END, \
     absence_proven_at = CASE WHEN given.revision IS NULL \
        THEN provisioned_resources.absence_proven_at ELSE given.absence_proven_at END, \
     observed = coalesce(given.observed, provisioned_resources.observed), \
     revision = CASE WHEN given.revision IS NULL THEN provisioned_resources.revision \
        ELSE provisioned_resources.revision + 1 END, \
     updated_at = CASE WHEN given.revision IS NULL THEN updated_at ELSE ",
    sql!(greatest, "(", now),
    ", updated_at) END, \
     failures = coalesce(given.failures, provisioned_resources.failures), \
     claimed_by = CASE WHEN given.claim_token IS NULL THEN claimed_by END, \
     lease_until = CASE WHEN given.claim_token IS NULL THEN lease_until END, \
     due_at = CASE WHEN given.claim_token IS NULL THEN due_at \
        WHEN wake <> claimed_wake THEN ",
    sql!(now, " ELSE ", now, " + ", given_micros),
    " END FROM ",
    rows_from_json!(
        id: uuid,
        revision: bigint,
        status: text,
        phase_since: time,
        failure_reason: text,
        bootstrap_token_id: uuid,
        deletion_requested_at: time,
        unsettled_since: time,
        absence_proven_at: time,
        observed: json,
        claim_token: bigint,
        micros: bigint,
        failures: integer,
    ),
    " WHERE provisioned_resources.id = given.id \
     AND (given.revision IS NULL OR provisioned_resources.revision = given.revision) \
     AND (given.claim_token IS NULL OR provisioned_resources.claim_token = given.claim_token) \
     RETURNING provisioned_resources.id",
);

/// Which condition of the patch was not met: the revision, or the claim.
async fn refuse_patch(
    connection: &mut Connection,
    patch: &AttemptPatch<'_>,
) -> Result<(), Failure> {
    let row = sqlx::query("SELECT revision FROM provisioned_resources WHERE id = $1")
        .bind(patch.id)
        .fetch_optional(&mut *connection)
        .await?;
    let stored: Option<i64> = row.map(|row| row.try_get("revision")).transpose()?;
    let refusal = match (patch.revision, patch.claim_token) {
        (Some(revision), _) if stored != Some(revision) => {
            writes::stale("provisioned resource", patch.id, Revision(revision))
        }
        (_, Some(claim_token)) => Refusal::new(
            ErrorKind::ClaimLost,
            format!("claim {claim_token} of {} is no longer held; another worker has it", patch.id),
        ),
        // The observation of a row that does not exist: nobody will read it.
        _ => return Ok(()),
    };
    Err(Failure::Refused(refusal))
}
