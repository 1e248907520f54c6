//! Enrolment: locks the resource of the token and the addresses of the project.
//!
//! An address is a host number. Each number that was ever assigned is in
//! exactly one row: that of its live holder or of the last node that left with
//! it. So the lowest free number and the highest assigned one are one index
//! lookup each, however many nodes there are, and an older version that
//! deregisters a node frees its number without knowing of it.
//!
//! The lock of the project comes after those of the resource, its nodes and its
//! attempts. Other holders of a project's lock (declarations, the catalog) wait
//! for no row of an existing resource, and the query for a free number skips
//! locked rows, so no deadlock is possible.

use slipway_app::nodes::port::MeshView;
use slipway_core::Timestamp;
use slipway_core::broker::snapshot::EnrolSnapshot;
use slipway_core::ids::{NodeId, ProjectId};
use slipway_core::nodes::mesh::{MeshAddress, MeshCidr, MeshPool};
use slipway_core::nodes::node::Node;
use sqlx::Row as _;
use uuid::Uuid;

use super::broker::decide;
use super::page::hydrate;
use super::transaction::Load;
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

/// An enrolment with a token.
pub(crate) struct Enrolment<'a> {
    pub(crate) resource: decide::ByKey<'a>,
    pub(crate) nonce: Option<&'a str>,
    pub(crate) public_key: &'a [u8; 32],
}

impl Load for Enrolment<'_> {
    type Snapshot = EnrolSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<EnrolSnapshot, Failure> {
        let mut resource = self.resource.load(connection).await?;
        let project = resource.resource.project_id;
        let cidr = lock_mesh(connection, project).await?;
        let lowest_left = lowest_left(connection, project).await?;
        let row = sqlx::query(sql!(
            "SELECT ",
            now,
            " AS now, (SELECT mesh_host FROM nodes WHERE project_id = $1 \
             AND mesh_host IS NOT NULL ORDER BY mesh_host DESC LIMIT 1) AS highest, \
             (SELECT count(*) FROM bootstrap_tokens WHERE project_id = $1 \
             AND consumed_nonce = $2) AS with_nonce, \
             (SELECT count(*) FROM nodes WHERE project_id = $1 AND public_key = $3 \
             AND deregistered_at IS NULL) AS with_key"
        ))
        .bind(project.as_uuid())
        .bind(self.nonce)
        .bind(&self.public_key[..])
        .fetch_one(&mut *connection)
        .await?;
        // The lock of the project may have been waited for.
        resource.now = Timestamp::from(row.try_get::<Micros, _>("now")?);
        let pool = MeshPool { cidr, lowest_left, highest: row.try_get("highest")? };
        let nonce_taken = row.try_get::<i64, _>("with_nonce")? > 0;
        let public_key_taken = row.try_get::<i64, _>("with_key")? > 0;
        Ok(EnrolSnapshot { resource, pool, nonce_taken, public_key_taken })
    }
}

async fn lock_mesh(connection: &mut Connection, project: ProjectId) -> Result<MeshCidr, Failure> {
    let row = sqlx::query(sql!("SELECT id, mesh_cidr FROM projects WHERE id = $1", for_update))
        .bind(project.as_uuid())
        .fetch_optional(connection)
        .await?
        .ok_or(Failure::NotFound { kind: ProjectId::KIND })?;
    hydrate(&row, "id", cidr)
}

async fn lowest_left(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<Option<i64>, sqlx::Error> {
    let row = sqlx::query(sql!(
        "SELECT mesh_host FROM nodes WHERE project_id = $1 AND mesh_host IS NOT NULL \
         AND deregistered_at IS NOT NULL ORDER BY mesh_host LIMIT 1",
        skip_locked
    ))
    .bind(project.as_uuid())
    .fetch_optional(connection)
    .await?;
    row.map(|row| row.try_get("mesh_host")).transpose()
}

/// Takes the number from the node that left with it. That node's row keeps the
/// address, for people.
pub(crate) async fn host_take_over(
    connection: &mut Connection,
    node: &Node,
) -> Result<(), sqlx::Error> {
    let Some(host) = node.mesh.and_then(|mesh| mesh.host) else { return Ok(()) };
    sqlx::query(
        "UPDATE nodes SET mesh_host = NULL WHERE project_id = $1 AND mesh_host = $2 \
         AND deregistered_at IS NOT NULL",
    )
    .bind(node.project_id.as_uuid())
    .bind(host)
    .execute(connection)
    .await?;
    Ok(())
}

pub(crate) async fn node_mesh(
    connection: &mut Connection,
    (id, limit): (NodeId, u32),
) -> Result<Option<MeshView>, Failure> {
    let row = sqlx::query(concat!("SELECT ", node_columns!(), " FROM nodes WHERE id = $1"))
        .bind(id.as_uuid())
        .fetch_optional(&mut *connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let node = hydrate(&row, "id", super::hydrate::node)?;
    let project = sqlx::query("SELECT id, mesh_cidr FROM projects WHERE id = $1")
        .bind(node.project_id.as_uuid())
        .fetch_one(&mut *connection)
        .await?;
    let peers = sqlx::query(concat!(
        "SELECT ",
        node_columns!(),
        " FROM nodes WHERE project_id = $1 AND mesh_host IS NOT NULL \
         AND deregistered_at IS NULL AND id <> $2 ORDER BY mesh_host LIMIT $3"
    ))
    .bind(node.project_id.as_uuid())
    .bind(id.as_uuid())
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    let peers = super::page::readable(NodeId::KIND, &peers, super::hydrate::node);
    Ok(Some(MeshView { cidr: hydrate(&project, "id", cidr)?, node, peers }))
}

/// The mesh of a project; rows of an older version have none.
pub(crate) fn cidr(row: &Row) -> Result<MeshCidr, Fault> {
    let Some(text) = rows::get::<Option<String>>(row, "mesh_cidr")? else {
        return Ok(MeshCidr::DEFAULT);
    };
    MeshCidr::parse("mesh_cidr", &text).map_err(|error| Fault::new("mesh_cidr", error.problem))
}

/// The address of a node, if it has one.
pub(crate) fn address(row: &Row) -> Result<Option<MeshAddress>, Fault> {
    let Some(text) = rows::get::<Option<String>>(row, "mesh_ip")? else { return Ok(None) };
    let ip = text.parse().map_err(|_| Fault::new("mesh_ip", "is no address"))?;
    Ok(Some(MeshAddress { host: rows::get(row, "mesh_host")?, ip }))
}

/// How many registered nodes have an address of the project's mesh.
pub(crate) async fn live_nodes(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<i64, sqlx::Error> {
    let statement = "SELECT count(*) AS found FROM nodes WHERE project_id = $1 \
                     AND mesh_host IS NOT NULL AND deregistered_at IS NULL";
    let project: Uuid = project.as_uuid();
    super::page::count(connection, statement, project).await
}
