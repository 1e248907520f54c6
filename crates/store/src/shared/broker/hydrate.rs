//! Hydrates resources and attempts from rows, by the names of their columns.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_core::broker::attempt::{Correction, ProvisionedResource, StoredAttempt};
use slipway_core::broker::resource::Resource;
use slipway_core::broker::surge::Surge;
use slipway_core::catalog::parameters::ParameterValues;
use slipway_core::ids::{
    BlueprintVersionId, BootstrapTokenId, CloudCredentialId, DeletionId, GroupId, Partition,
    ProjectId, ProvisionedResourceId, ResourceId, Revision, WorkspaceId,
};
use slipway_core::text::{Handle, Labels, Reason};
use slipway_core::topology::owner::Owner;
use slipway_core::topology::role::NodeRole;
use sqlx::Row as _;
use uuid::Uuid;

use super::deletion::hydrate::duration;
use super::{Row, rows};
use crate::fault::Fault;

pub(crate) fn resource(row: &Row) -> Result<Resource, Fault> {
    let handle: String = rows::get(row, "r_handle")?;
    Ok(Resource {
        id: ResourceId::new(rows::get(row, "a_resource_id")?),
        project_id: ProjectId::new(rows::get(row, "r_project_id")?),
        handle: Handle::parse(&handle).map_err(|error| Fault::new("r_handle", error.problem))?,
        labels: rows::json::<Labels>(row, "r_labels")?,
        revision: Revision(rows::get(row, "r_revision")?),
        deletion_id: rows::get::<Option<Uuid>>(row, "r_deletion_id")?.map(DeletionId::new),
        surge: surge(row)?,
        owner: owner(row)?,
        deleted_at: rows::time_or_null(row, "r_deleted_at")?,
        created_at: rows::time(row, "r_created_at")?,
        updated_at: rows::time(row, "r_updated_at")?,
    })
}

/// The two attempts of a resource that has two, the first one in use when that began.
pub(crate) fn pair(row: &Row) -> Result<Option<[Uuid; 2]>, sqlx::Error> {
    let from: Option<Uuid> = row.try_get("r_surge_from")?;
    let to: Option<Uuid> = row.try_get("r_surge_to")?;
    Ok(from.zip(to).map(|(from, to)| [from, to]))
}

/// The workspace of a server; `None` for what nobody owns.
fn owner(row: &Row) -> Result<Option<Owner>, Fault> {
    let Some(workspace) = rows::get::<Option<Uuid>>(row, "r_workspace_id")? else {
        return Ok(None);
    };
    Ok(Some(Owner {
        workspace_id: WorkspaceId::new(workspace),
        workspace: rows::get::<Option<String>>(row, "r_workspace")?.unwrap_or_default(),
        group_id: GroupId::new(rows::get(row, "r_group_id")?),
        group: rows::get::<Option<String>>(row, "r_group")?.unwrap_or_default(),
        role: rows::member(row, "r_server_role", NodeRole::parse)?,
    }))
}

fn surge(row: &Row) -> Result<Option<Surge>, Fault> {
    let Some(to) = rows::get::<Option<Uuid>>(row, "r_surge_to")? else { return Ok(None) };
    let reason: String = rows::get(row, "r_surge_reason")?;
    let reason =
        Reason::parse(&reason).map_err(|error| Fault::new("r_surge_reason", error.problem))?;
    Ok(Some(Surge {
        from: ProvisionedResourceId::new(rows::get(row, "r_surge_from")?),
        to: ProvisionedResourceId::new(to),
        requested_by: rows::get(row, "r_surge_by")?,
        requested_at: rows::time(row, "r_surge_at")?,
        reason,
        retention: duration(rows::get(row, "r_surge_retention")?),
        deletion_id: rows::get::<Option<Uuid>>(row, "r_surge_deletion_id")?.map(DeletionId::new),
        aborted: rows::get::<i32>(row, "r_surge_aborted")? != 0,
    }))
}

pub(crate) fn attempt(row: &Row) -> Result<ProvisionedResource, Fault> {
    let values: BTreeMap<String, Value> = rows::json(row, "a_parameter_values")?;
    ProvisionedResource::hydrate(StoredAttempt {
        id: ProvisionedResourceId::new(rows::get(row, "a_id")?),
        resource_id: ResourceId::new(rows::get(row, "a_resource_id")?),
        project_id: ProjectId::new(rows::get(row, "a_project_id")?),
        blueprint_version_id: BlueprintVersionId::new(rows::get(row, "a_blueprint_version_id")?),
        cloud_credential_id: CloudCredentialId::new(rows::get(row, "a_cloud_credential_id")?),
        attempt: rows::get(row, "a_attempt")?,
        phase: rows::get(row, "a_status")?,
        phase_since: rows::time(row, "a_phase_since")?,
        failure_reason: rows::get(row, "a_failure_reason")?,
        xr_name: rows::get(row, "a_xr_name")?,
        bootstrap_token_id: rows::get::<Option<Uuid>>(row, "a_bootstrap_token_id")?
            .map(BootstrapTokenId::new),
        parameter_values: ParameterValues::from_stored(values),
        partition: Partition::new(rows::get(row, "a_partition")?),
        in_use: rows::get::<i32>(row, "a_in_use")? != 0,
        hostname: rows::get(row, "a_hostname")?,
        correction: correction(row)?,
        deletion_requested_at: rows::time_or_null(row, "a_deletion_requested_at")?,
        unsettled_since: rows::time(row, "a_unsettled_since")?,
        absence_proven_at: rows::time_or_null(row, "a_absence_proven_at")?,
        abandoned_at: rows::time_or_null(row, "a_abandoned_at")?,
        revision: Revision(rows::get(row, "a_revision")?),
        created_at: rows::time(row, "a_created_at")?,
        updated_at: rows::time(row, "a_updated_at")?,
    })
    .map_err(|error| Fault::new(error.field, error.problem))
}

fn correction(row: &Row) -> Result<Option<Correction>, Fault> {
    let Some(version) = rows::get::<Option<Uuid>>(row, "a_next_blueprint_version_id")? else {
        return Ok(None);
    };
    let values: BTreeMap<String, Value> = rows::json(row, "a_next_parameter_values")?;
    Ok(Some(Correction {
        blueprint_version_id: BlueprintVersionId::new(version),
        parameter_values: ParameterValues::from_stored(values),
    }))
}
