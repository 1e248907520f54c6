//! Hydrates aggregates from rows.
//!
//! Each function reads the columns of one aggregate, by name. A column that
//! cannot be read or breaks a rule of core is a [`Fault`] of that row alone;
//! nothing here guesses, repairs or fails other rows.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;
use slipway_core::Timestamp;
use slipway_core::blocker::{Blocker, BlockerCode};
use slipway_core::broker::attempt::{ProvisionedResource, StoredAttempt};
use slipway_core::broker::parameters::{ParameterSchema, ParameterValues};
use slipway_core::broker::resource::Resource;
use slipway_core::catalog::blueprint_version::{
    BlueprintVersion, CompositeDefinition, CompositeScope, CompositeType, Engine,
    InjectionStrategy, MeshRole,
};
use slipway_core::deletion::record::{Deletion, DeletionState, Member};
use slipway_core::ids::{
    BlueprintId, BlueprintVersionId, BootstrapTokenId, CloudCredentialId, ClusterId, DeletionId,
    DrainId, NodeId, Partition, ProjectId, ProvisionedResourceId, ResourceId, Revision,
};
use slipway_core::nodes::node::{DeregisteredHow, Deregistration, Drain, Node, Reported};
use slipway_core::nodes::token::{BootstrapToken, Consumption, SecretHash, TokenKind};
use slipway_core::placement::namespace::{NamespacePhase, NamespaceStatus, Placement};
use slipway_core::text::{Handle, Labels};
use sqlx::types::Json;
use sqlx::{Decode, Row as _, Type};
use uuid::Uuid;

use super::nodes::mesh;
use super::{Db, Row};
use crate::fault::Fault;
use crate::micros::Micros;

/// Reads one column.
pub(crate) fn get<'r, T>(row: &'r Row, column: &str) -> Result<T, Fault>
where
    T: Decode<'r, Db> + Type<Db>,
{
    row.try_get(column).map_err(|error| Fault::new(column, format!("cannot be read: {error}")))
}

pub(crate) fn time(row: &Row, column: &str) -> Result<Timestamp, Fault> {
    get::<Micros>(row, column).map(Timestamp::from)
}

pub(crate) fn time_or_null(row: &Row, column: &str) -> Result<Option<Timestamp>, Fault> {
    Ok(get::<Option<Micros>>(row, column)?.map(Timestamp::from))
}

pub(crate) fn json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, Fault> {
    let value: Json<Value> = get(row, column)?;
    serde_json::from_value(value.0)
        .map_err(|error| Fault::new(column, format!("has an unexpected shape: {error}")))
}

/// The same for a column that may be null.
pub(crate) fn json_or_null<T: DeserializeOwned>(
    row: &Row,
    column: &str,
) -> Result<Option<T>, Fault> {
    let stored: Option<Json<Value>> = get(row, column)?;
    match stored {
        Some(_) => json(row, column).map(Some),
        None => Ok(None),
    }
}

/// Reads a text of a closed set. A member that this version does not know is a
/// fault, never replaced by a default.
pub(crate) fn member<T>(
    row: &Row,
    column: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Fault> {
    let text: String = get(row, column)?;
    parse(&text)
        .ok_or_else(|| Fault::new(column, format!("is `{text}`, which this version does not know")))
}

fn bytes32(row: &Row, column: &str) -> Result<[u8; 32], Fault> {
    let bytes: Vec<u8> = get(row, column)?;
    bytes.try_into().map_err(|_| Fault::new(column, "must have 32 bytes"))
}

fn bytes32_or_null(row: &Row, column: &str) -> Result<Option<[u8; 32]>, Fault> {
    match get::<Option<Vec<u8>>>(row, column)? {
        None => Ok(None),
        Some(_) => bytes32(row, column).map(Some),
    }
}

fn required<T>(value: Option<T>, column: &str) -> Result<T, Fault> {
    value.ok_or_else(|| Fault::new(column, "must be set together with the columns beside it"))
}

pub(crate) fn resource(row: &Row) -> Result<Resource, Fault> {
    let handle: String = get(row, "r_handle")?;
    Ok(Resource {
        id: ResourceId::new(get(row, "a_resource_id")?),
        project_id: ProjectId::new(get(row, "r_project_id")?),
        handle: Handle::parse(&handle).map_err(|error| Fault::new("r_handle", error.problem))?,
        labels: json::<Labels>(row, "r_labels")?,
        revision: Revision(get(row, "r_revision")?),
        deletion_id: get::<Option<Uuid>>(row, "r_deletion_id")?.map(DeletionId::new),
        deleted_at: time_or_null(row, "r_deleted_at")?,
        created_at: time(row, "r_created_at")?,
        updated_at: time(row, "r_updated_at")?,
    })
}

pub(crate) fn attempt(row: &Row) -> Result<ProvisionedResource, Fault> {
    let values: BTreeMap<String, Value> = json(row, "a_parameter_values")?;
    ProvisionedResource::hydrate(StoredAttempt {
        id: ProvisionedResourceId::new(get(row, "a_id")?),
        resource_id: ResourceId::new(get(row, "a_resource_id")?),
        project_id: ProjectId::new(get(row, "a_project_id")?),
        blueprint_version_id: BlueprintVersionId::new(get(row, "a_blueprint_version_id")?),
        cloud_credential_id: CloudCredentialId::new(get(row, "a_cloud_credential_id")?),
        attempt: get(row, "a_attempt")?,
        phase: get(row, "a_status")?,
        phase_since: time(row, "a_phase_since")?,
        failure_reason: get(row, "a_failure_reason")?,
        xr_name: get(row, "a_xr_name")?,
        bootstrap_token_id: get::<Option<Uuid>>(row, "a_bootstrap_token_id")?
            .map(BootstrapTokenId::new),
        parameter_values: ParameterValues::from_stored(values),
        partition: get::<Option<Uuid>>(row, "a_partition")?.map(Partition::new),
        deletion_requested_at: time_or_null(row, "a_deletion_requested_at")?,
        unsettled_since: time_or_null(row, "a_unsettled_since")?,
        absence_proven_at: time_or_null(row, "a_absence_proven_at")?,
        revision: Revision(get(row, "a_revision")?),
        created_at: time(row, "a_created_at")?,
        updated_at: time(row, "a_updated_at")?,
    })
    .map_err(|error| Fault::new(error.field, error.problem))
}

pub(crate) fn blueprint_version(row: &Row) -> Result<BlueprintVersion, Fault> {
    let composite = composite_definition(row)?;
    let cloud_tags = composite.as_ref().is_some_and(|composite| composite.cloud_tags);
    Ok(BlueprintVersion {
        id: BlueprintVersionId::new(get(row, "v_id")?),
        blueprint_id: BlueprintId::new(get(row, "v_blueprint_id")?),
        slug: get(row, "v_slug")?,
        version: get(row, "v_version")?,
        engine: member(row, "v_engine", Engine::parse)?,
        composite_type: composite.map(|composite| composite.composite_type),
        cloud_tags,
        parameter_schema: json::<ParameterSchema>(row, "v_parameter_schema")?,
        injection_strategy: member(row, "v_injection_strategy", InjectionStrategy::parse)?,
        mesh_role: member(row, "v_mesh_role", MeshRole::parse)?,
        provider_kinds: json(row, "v_provider_kinds")?,
    })
}

/// `None` if the version has none; all columns are set or none is.
pub(crate) fn composite_definition(row: &Row) -> Result<Option<CompositeDefinition>, Fault> {
    let text = |column: &str| required(get::<Option<String>>(row, column)?, column);
    if get::<Option<String>>(row, "v_kind")?.is_none() {
        return Ok(None);
    }
    let composite_type = CompositeType {
        group: text("v_api_group")?,
        version: text("v_api_version")?,
        kind: text("v_kind")?,
        plural: text("v_plural")?,
        scope: member(row, "v_scope", CompositeScope::parse)?,
    };
    let cloud_tags = get::<Option<i32>>(row, "v_cloud_tags")?.is_some_and(|flag| flag != 0);
    Ok(Some(CompositeDefinition { composite_type, cloud_tags }))
}

/// `None` if the project is not assigned to a cluster.
pub(crate) fn placement(row: &Row) -> Result<Option<Placement>, Fault> {
    let Some(cluster_id) = get::<Option<Uuid>>(row, "p_cluster_id")? else {
        return Ok(None);
    };
    let NamespaceStatus { providers, problems, .. } =
        json_or_null::<NamespaceStatus>(row, "p_status")?.unwrap_or_default();
    Ok(Some(Placement {
        cluster_id: ClusterId::new(cluster_id),
        cluster: get(row, "p_cluster")?,
        namespace: get(row, "p_namespace")?,
        namespace_phase: member(row, "p_namespace_phase", NamespacePhase::parse)?,
        substrate_uid: get(row, "p_substrate_uid")?,
        providers,
        problems,
    }))
}

pub(crate) fn token(row: &Row) -> Result<BootstrapToken, Fault> {
    let consumed = match time_or_null(row, "t_consumed_at")? {
        None => None,
        Some(at) => {
            let node: Option<Uuid> = get(row, "t_consumed_by_node_id")?;
            let public_key = bytes32_or_null(row, "t_consumed_public_key")?;
            Some(Consumption {
                at,
                nonce: get(row, "t_consumed_nonce")?,
                node_id: NodeId::new(required(node, "t_consumed_by_node_id")?),
                public_key: required(public_key, "t_consumed_public_key")?,
            })
        }
    };
    let hash: Vec<u8> = get(row, "t_hash")?;
    Ok(BootstrapToken {
        id: BootstrapTokenId::new(get(row, "t_id")?),
        project_id: ProjectId::new(get(row, "t_project_id")?),
        provisioned_resource_id: ProvisionedResourceId::new(get(row, "t_provisioned_resource_id")?),
        kind: member(row, "t_kind", TokenKind::parse)?,
        hash: SecretHash::from_slice(&hash)
            .ok_or_else(|| Fault::new("t_hash", "must have 32 bytes"))?,
        issued_at: time(row, "t_issued_at")?,
        expires_at: time(row, "t_expires_at")?,
        hard_expires_at: time(row, "t_hard_expires_at")?,
        consumed,
        revoked_at: time_or_null(row, "t_revoked_at")?,
        issued_by: get(row, "t_issued_by")?,
    })
}

pub(crate) fn deletion(row: &Row) -> Result<Deletion, Fault> {
    Ok(Deletion {
        id: DeletionId::new(get(row, "d_id")?),
        kind: get(row, "d_kind")?,
        target_id: get(row, "d_target_id")?,
        state: member(row, "d_state", DeletionState::parse)?,
        requested_by: get(row, "d_requested_by")?,
        reason: get(row, "d_reason")?,
        members: json::<Vec<Member>>(row, "d_members")?,
        revision: Revision(get(row, "d_revision")?),
        requested_at: time(row, "d_requested_at")?,
        done_at: time_or_null(row, "d_done_at")?,
        restorable_until: time_or_null(row, "d_restorable_until")?,
    })
}

pub(crate) fn node(row: &Row) -> Result<Node, Fault> {
    let drain = match get::<Option<Uuid>>(row, "drain_id")? {
        None => None,
        Some(id) => {
            let requested_at = time_or_null(row, "drain_requested_at")?;
            Some(Drain {
                id: DrainId::new(id),
                requested_at: required(requested_at, "drain_requested_at")?,
            })
        }
    };
    let deregistration = match time_or_null(row, "deregistered_at")? {
        None => None,
        Some(at) => {
            let by: Option<String> = get(row, "deregistered_by")?;
            Some(Deregistration {
                at,
                how: member(row, "deregistered_how", DeregisteredHow::parse)?,
                by: required(by, "deregistered_by")?,
                reason: get(row, "deregistered_reason")?,
            })
        }
    };
    let key_hash = match get::<Option<Vec<u8>>>(row, "key_hash")? {
        None => None,
        Some(bytes) => Some(
            SecretHash::from_slice(&bytes)
                .ok_or_else(|| Fault::new("key_hash", "must have 32 bytes"))?,
        ),
    };
    Ok(Node {
        id: NodeId::new(get(row, "id")?),
        project_id: ProjectId::new(get(row, "project_id")?),
        resource_id: ResourceId::new(get(row, "resource_id")?),
        provisioned_resource_id: ProvisionedResourceId::new(get(row, "provisioned_resource_id")?),
        bootstrap_token_id: BootstrapTokenId::new(get(row, "bootstrap_token_id")?),
        hostname: get(row, "hostname")?,
        public_key: bytes32(row, "public_key")?,
        key_hash,
        capabilities: json(row, "capabilities")?,
        mesh: mesh::address(row)?,
        reported: Reported {
            version: get(row, "binary_version")?,
            checksum: get(row, "binary_checksum")?,
            status: get(row, "agent_status")?,
        },
        revision: Revision(get(row, "revision")?),
        registered_at: time(row, "registered_at")?,
        last_heartbeat_at: time_or_null(row, "last_heartbeat_at")?,
        drain,
        deregistration,
    })
}

pub(crate) fn blocker(row: &Row) -> Result<Blocker, Fault> {
    Ok(Blocker {
        code: member(row, "code", BlockerCode::parse)?,
        message: get(row, "message")?,
        since: time(row, "since")?,
        evidence: json(row, "evidence")?,
        next_retry_at: time_or_null(row, "next_retry_at")?,
    })
}
