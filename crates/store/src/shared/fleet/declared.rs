//! What documents of many things of Fleet read, by one statement each.

use slipway_app::fleet::port::{LinkName, ObjectHead};
use slipway_core::fleet::tags::{Annotation, Label};
use slipway_core::ids::{AgentId, DeploymentObjectId, StackId};
use uuid::Uuid;

use super::page::hydrate;
use super::{Connection, Row, rows, tags};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

pub(crate) async fn labels(
    connection: &mut Connection,
    owners: &[Uuid],
) -> Result<Vec<Label>, Failure> {
    let owners: IdList = owners.iter().copied().collect();
    let statement = sql!(
        "SELECT id, owner_kind, owner_id, label, created_at FROM fleet_labels WHERE owner_id ",
        (one_of "$1"),
        " ORDER BY owner_id, label"
    );
    let found = sqlx::query(statement).bind(owners).fetch_all(connection).await?;
    found.iter().map(|row| hydrate(row, "id", tags::label)).collect()
}

pub(crate) async fn annotations(
    connection: &mut Connection,
    owners: &[Uuid],
) -> Result<Vec<Annotation>, Failure> {
    let owners: IdList = owners.iter().copied().collect();
    let statement = sql!(
        "SELECT id, owner_kind, owner_id, key, value, created_at FROM fleet_annotations \
         WHERE owner_id ",
        (one_of "$1"),
        " ORDER BY owner_id, key"
    );
    let found = sqlx::query(statement).bind(owners).fetch_all(connection).await?;
    found.iter().map(|row| hydrate(row, "id", tags::annotation)).collect()
}

/// Of live generators and stacks.
pub(crate) async fn links(
    connection: &mut Connection,
    agents: &[Uuid],
) -> Result<Vec<LinkName>, Failure> {
    let agents: IdList = agents.iter().copied().collect();
    let statement = sql!(
        "SELECT r.agent_id, 0 AS target, g.name FROM fleet_registrations r \
         JOIN generators g ON g.id = r.generator_id AND g.deleted_at IS NULL WHERE r.agent_id ",
        (one_of "$1"),
        " UNION ALL SELECT t.agent_id, 1 AS target, s.name FROM fleet_targets t \
         JOIN stacks s ON s.id = t.stack_id AND s.deleted_at IS NULL WHERE t.agent_id ",
        (one_of "$1")
    );
    let found = sqlx::query(statement).bind(agents).fetch_all(connection).await?;
    let link = |row: &Row| -> Result<LinkName, Fault> {
        Ok(LinkName {
            agent_id: AgentId::new(rows::get(row, "agent_id")?),
            is_target: rows::get::<i32>(row, "target")? != 0,
            name: rows::get(row, "name")?,
        })
    };
    found.iter().map(|row| hydrate(row, "agent_id", link)).collect()
}

/// The newest object of each stack for all agents that nobody withdrew.
pub(crate) async fn heads(
    connection: &mut Connection,
    stacks: &[Uuid],
) -> Result<Vec<ObjectHead>, Failure> {
    let stacks: IdList = stacks.iter().copied().collect();
    let statement = sql!(
        "SELECT o.stack_id, o.id, o.yaml_checksum, octet_length(o.yaml_content) AS bytes, \
         o.is_deletion_marker FROM stacks s JOIN deployment_objects o ON o.id = \
            (SELECT x.id FROM deployment_objects x WHERE x.stack_id = s.id \
             AND x.agent_id IS NULL AND x.withdrawn_at IS NULL \
             ORDER BY x.sequence_id DESC LIMIT 1) WHERE s.id ",
        (one_of "$1")
    );
    let found = sqlx::query(statement).bind(stacks).fetch_all(connection).await?;
    let head = |row: &Row| -> Result<ObjectHead, Fault> {
        Ok(ObjectHead {
            stack_id: StackId::new(rows::get(row, "stack_id")?),
            object_id: DeploymentObjectId::new(rows::get(row, "id")?),
            checksum: rows::get(row, "yaml_checksum")?,
            bytes: usize::try_from(rows::get::<i32>(row, "bytes")?).unwrap_or_default(),
            is_marker: rows::get::<i32>(row, "is_deletion_marker")? != 0,
        })
    };
    found.iter().map(|row| hydrate(row, "id", head)).collect()
}
