//! Writes resources and attempts, by sets.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use slipway_core::broker::attempt::ProvisionedResource;
use slipway_core::broker::orphan::KeepOrder;
use slipway_core::broker::resource::Resource;
use slipway_core::broker::{BrokerWrite, Labelled};
use slipway_core::catalog::parameters::ParameterValues;
use slipway_core::commit::Release;
use slipway_core::ids::Revision;
use slipway_core::subject::LoopKind;
use slipway_core::{ErrorKind, Refusal};
use slipway_durable::claim::micros;
use sqlx::Row as _;
use uuid::Uuid;

use super::claims;
use super::commit::recheck_micros;
use super::json_values::JsonTime;
use super::row_set::RowSet;
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
    ended_claims: Vec<Uuid>,
    labelled: Vec<&'a Labelled>,
}

/// Everything that one decision writes to the row of its attempt. A decision
/// changes the phase, records the observation and releases the claim: one write
/// of the row instead of three.
#[derive(Debug, Default, Serialize)]
struct AttemptPatch<'a> {
    id: Uuid,
    /// The revision that was read; required for the columns of the aggregate below.
    revision: Option<i64>,
    blueprint_version_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter_values: Option<&'a ParameterValues>,
    status: Option<&'static str>,
    phase_since: Option<JsonTime>,
    failure_reason: Option<&'a str>,
    bootstrap_token_id: Option<Uuid>,
    deletion_requested_at: Option<JsonTime>,
    unsettled_since: Option<JsonTime>,
    absence_proven_at: Option<JsonTime>,
    abandoned_at: Option<JsonTime>,
    in_use: Option<i32>,
    next_blueprint_version_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_parameter_values: Option<&'a ParameterValues>,
    failed_at: Option<JsonTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_observed: Option<&'a Value>,
    // Omitted rather than null: a null would be read as JSON's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_outside: Option<&'a [KeepOrder]>,
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
                patch.blueprint_version_id = Some(attempt.blueprint_version_id().as_uuid());
                patch.parameter_values = Some(attempt.parameter_values());
                patch.status = Some(attempt.phase().as_str());
                patch.phase_since = Some(attempt.phase_since().into());
                patch.failure_reason = attempt.failure_reason();
                patch.bootstrap_token_id = attempt.bootstrap_token_id().map(|id| id.as_uuid());
                patch.deletion_requested_at = attempt.deletion_requested_at().map(Into::into);
                patch.unsettled_since = Some(attempt.unsettled_since().into());
                patch.absence_proven_at = attempt.absence_proven_at().map(Into::into);
                patch.abandoned_at = attempt.abandoned_at().map(Into::into);
                patch.in_use = Some(i32::from(attempt.is_in_use()));
                let next = attempt.correction();
                patch.next_blueprint_version_id =
                    next.map(|next| next.blueprint_version_id.as_uuid());
                patch.next_parameter_values = next.map(|next| &next.parameter_values);
            }
            BrokerWrite::FailureRecord(attempt, failure) => {
                let patch = self.patch(attempt.as_uuid());
                patch.failed_at = Some(failure.at.into());
                patch.failure_observed = Some(&failure.observed);
            }
            BrokerWrite::ObservedReplace(attempt, observed) => {
                self.patch(attempt.as_uuid()).observed = Some(observed);
            }
            BrokerWrite::KeptReplace(attempt, kept) => {
                self.patch(attempt.as_uuid()).kept_outside = Some(kept);
            }
            BrokerWrite::ClaimEnd(attempt) => self.ended_claims.push(attempt.as_uuid()),
            BrokerWrite::LabelledWake(labelled) => self.labelled.push(labelled),
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
        RESOURCES_INSERT.write_guarded(connection, &self.new_resources, handle_taken).await?;
        let stale = |row: &Resource| writes::stale("resource", row.id, row.revision);
        RESOURCES_UPDATE.write_guarded(connection, &self.resources, stale).await?;
        ATTEMPTS_INSERT.write(connection, &self.new_attempts).await
    }

    /// Rows of attempts, which refer to tokens.
    pub(crate) async fn apply_attempts(self, connection: &mut Connection) -> Result<(), Failure> {
        let is_released = |patch: &AttemptPatch<'_>| patch.claim_token.is_some();
        let (released, others): (Vec<_>, Vec<_>) =
            self.patches.into_values().partition(is_released);
        for (statement, patches) in [(PATCH_AND_RELEASE, released), (PATCH, others)] {
            let ids: Vec<_> = patches.iter().map(|patch| patch.id).collect();
            if let Some(missing) =
                writes::first_missing(connection, statement, &ids, &patches).await?
            {
                refuse_patch(connection, &patches[missing]).await?;
            }
        }
        for labelled in self.labelled {
            match labelled {
                Labelled::Project(project) => claims::wake_project(connection, *project).await?,
                Labelled::Label(key) => claims::wake_label(connection, key).await?,
            }
        }
        claims::end(connection, &self.ended_claims).await
    }
}

/// The handle was checked under the lock of its project; the index is the backstop.
const RESOURCES_INSERT: RowSet<Resource> = insert_rows!(guarded, "resources", |resource: &Resource| {
    id: uuid = resource.id,
    revision: bigint = resource.revision,
    project_id: uuid = resource.project_id,
    handle: text = resource.handle.as_str(),
    labels: json = resource.labels,
    workspace_id: uuid = resource.owner.as_ref().map(|owner| owner.workspace_id),
    group_id: uuid = resource.owner.as_ref().map(|owner| owner.group_id),
    server_role: text = resource.owner.as_ref().map(|owner| owner.role),
    deletion_id: uuid = resource.deletion_id,
    deleted_at: time = resource.deleted_at,
    created_at: time = resource.created_at,
    updated_at: time = resource.updated_at,
});

fn handle_taken(resource: &Resource) -> Refusal {
    Refusal::new(
        ErrorKind::HandleTaken,
        format!("handle `{}` is taken in this project; choose another", resource.handle),
    )
    .at("handle")
}

const RESOURCES_UPDATE: RowSet<Resource> = update_rows!(dated, "resources" by id, |resource: &Resource| {
    labels: json = resource.labels,
    deletion_id: uuid = resource.deletion_id,
    surge_from: uuid = resource.surge.as_ref().map(|surge| surge.from),
    surge_to: uuid = resource.surge.as_ref().map(|surge| surge.to),
    surge_by: text = resource.surge.as_ref().map(|surge| &surge.requested_by),
    surge_at: time = resource.surge.as_ref().map(|surge| surge.requested_at),
    surge_reason: text = resource.surge.as_ref().map(|surge| surge.reason.as_str()),
    surge_retention: bigint = resource.surge.as_ref().map(|surge| micros(surge.retention)),
    surge_deletion_id: uuid = resource.surge.as_ref().and_then(|surge| surge.deletion_id),
    surge_aborted: integer = resource.surge.as_ref().map(|surge| i32::from(surge.aborted)),
    deleted_at: time = resource.deleted_at,
});

const ATTEMPTS_INSERT: RowSet<ProvisionedResource> = insert_rows!(plain, "provisioned_resources", |attempt: &ProvisionedResource| {
    id: uuid = attempt.id(),
    revision: bigint = attempt.revision(),
    resource_id: uuid = attempt.resource_id(),
    project_id: uuid = attempt.project_id(),
    blueprint_version_id: uuid = attempt.blueprint_version_id(),
    cloud_credential_id: uuid = attempt.cloud_credential_id(),
    attempt: integer = attempt.attempt(),
    status: text = attempt.phase().as_str(),
    phase_since: time = attempt.phase_since(),
    failure_reason: text = attempt.failure_reason(),
    xr_name: text = attempt.xr_name(),
    bootstrap_token_id: uuid = attempt.bootstrap_token_id(),
    parameter_values: json = attempt.parameter_values(),
    deletion_requested_at: time = attempt.deletion_requested_at(),
    unsettled_since: time = attempt.unsettled_since(),
    created_at: time = attempt.created_at(),
    updated_at: time = attempt.updated_at(),
    partition: uuid = attempt.partition(),
    in_use: integer = i32::from(attempt.is_in_use()),
    hostname: text = attempt.hostname(),
});

/// Names the revision if the aggregate is written; takes further assignments, each
/// after a comma, and further conditions.
macro_rules! patch {
    ($assignments:expr, $conditions:expr) => {
        concat!(
            "UPDATE provisioned_resources SET \
             blueprint_version_id = coalesce(given.blueprint_version_id, \
                provisioned_resources.blueprint_version_id), \
             parameter_values = coalesce(given.parameter_values, \
                provisioned_resources.parameter_values), \
             status = coalesce(given.status, provisioned_resources.status), \
             phase_since = coalesce(given.phase_since, provisioned_resources.phase_since), \
             failure_reason = CASE WHEN given.revision IS NULL \
                THEN provisioned_resources.failure_reason ELSE given.failure_reason END, \
             bootstrap_token_id = CASE WHEN given.revision IS NULL \
                THEN provisioned_resources.bootstrap_token_id ELSE given.bootstrap_token_id END, \
             deletion_requested_at = CASE WHEN given.revision IS NULL \
                THEN provisioned_resources.deletion_requested_at \
                ELSE given.deletion_requested_at END, \
             unsettled_since = CASE WHEN given.revision IS NULL \
                THEN provisioned_resources.unsettled_since ELSE given.unsettled_since END, \
             absence_proven_at = CASE WHEN given.revision IS NULL \
                THEN provisioned_resources.absence_proven_at ELSE given.absence_proven_at END, \
             abandoned_at = CASE WHEN given.revision IS NULL \
                THEN provisioned_resources.abandoned_at ELSE given.abandoned_at END, \
             in_use = coalesce(given.in_use, provisioned_resources.in_use), \
             next_blueprint_version_id = coalesce(given.next_blueprint_version_id, \
                provisioned_resources.next_blueprint_version_id), \
             next_parameter_values = coalesce(given.next_parameter_values, \
                provisioned_resources.next_parameter_values), \
             failed_at = coalesce(given.failed_at, provisioned_resources.failed_at), \
             failure_observed = coalesce(given.failure_observed, \
                provisioned_resources.failure_observed), \
             observed = coalesce(given.observed, provisioned_resources.observed), \
             kept_outside = coalesce(given.kept_outside, provisioned_resources.kept_outside), \
             revision = CASE WHEN given.revision IS NULL THEN provisioned_resources.revision \
                ELSE provisioned_resources.revision + 1 END, \
             updated_at = CASE WHEN given.revision IS NULL THEN updated_at ELSE ",
            sql!(greatest, "(", now),
            ", updated_at) END",
            $assignments,
            " FROM ",
            rows_from_json!(
                id: uuid,
                revision: bigint,
                blueprint_version_id: uuid,
                parameter_values: json,
                status: text,
                phase_since: time,
                failure_reason: text,
                bootstrap_token_id: uuid,
                deletion_requested_at: time,
                unsettled_since: time,
                absence_proven_at: time,
                abandoned_at: time,
                in_use: integer,
                next_blueprint_version_id: uuid,
                next_parameter_values: json,
                failed_at: time,
                failure_observed: json,
                observed: json,
                kept_outside: json,
                claim_token: bigint,
                micros: bigint,
                failures: integer,
            ),
            " WHERE provisioned_resources.id = given.id \
             AND (given.revision IS NULL OR provisioned_resources.revision = given.revision)",
            $conditions,
            " RETURNING provisioned_resources.id",
        )
    };
}

const PATCH: &str = patch!("", "");

const PATCH_AND_RELEASE: &str = patch!(
    concat!(", failures = given.failures, ", release_assignments!(sql!(given_micros))),
    concat!(
        " AND ",
        slipway_durable::release_condition!("provisioned_resources", "given.claim_token")
    )
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
