//! The pool of mesh addresses: a row for each host number of a project, free or
//! of one live node.
//!
//! A row of a live node repeats its host name and key, which never change. So
//! its peers are read from one narrow table in the order of its primary key,
//! and its indexes keep a number and a key unique.
//!
//! *Locks.* An enrolment locks one free row, skips those that others have
//! locked, and locks nothing after it. The pool grows, and the network changes,
//! under the lock of the project; a transaction that grows the pool locks
//! nothing else but a free row that it finds. So enrolments do not wait for the project, and who has locked
//! the project waits for no resource.

use data_encoding::HEXLOWER_PERMISSIVE;
use serde::Deserialize;
use slipway_app::nodes::port::{MeshView, Peer};
use slipway_core::catalog::project::{Project, mesh_in_use};
use slipway_core::ids::{NodeId, ProjectId};
use slipway_core::nodes::mesh::{MeshAddress, MeshCidr};
use slipway_core::nodes::node::Node;
use slipway_core::nodes::token::SecretHash;
use slipway_core::{ErrorKind, Refusal};
use slipway_durable::database::End;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::hydrate::node_columns;
use super::page::{count, hydrate, or_left_out};
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

/// Whether an enrolment waits for numbers that other enrolments have locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locked {
    Skipped,
    /// For the last numbers of a network: the others may yet be refused.
    Awaited,
}

/// Locks the lowest free number.
pub(crate) async fn lock_free(
    connection: &mut Connection,
    project: ProjectId,
    locked: Locked,
) -> Result<Option<i64>, sqlx::Error> {
    macro_rules! free {
        ($end:tt, $lock:tt) => {
            sql!(
                "SELECT host FROM mesh_addresses WHERE project_id = $1 AND node_id IS NULL \
                 ORDER BY host",
                $end,
                $lock
            )
        };
    }
    let statement = match locked {
        Locked::Skipped => free!(" LIMIT 1", skip_locked),
        // Without a limit: it would count rows that were taken during the wait.
        Locked::Awaited => free!("", for_update),
    };
    let free = sqlx::query(statement).bind(project.as_uuid()).fetch_all(connection).await?;
    free.first().map(|row| row.try_get("host")).transpose()
}

/// Adds numbers to the pool of the token's project, unless somebody else has just
/// done so. Answers whether there are free numbers now.
pub(crate) async fn extend(
    connection: &mut Connection,
    token: SecretHash,
) -> Result<End<bool>, Failure> {
    let project = sqlx::query(sql!(
        "SELECT id, mesh_cidr FROM projects \
         WHERE id = (SELECT project_id FROM bootstrap_tokens WHERE hash = $1)",
        for_update
    ))
    .bind(&token.as_bytes()[..])
    .fetch_optional(&mut *connection)
    .await?
    .ok_or(Failure::NotFound { kind: ProjectId::KIND })?;
    let id: Uuid = project.try_get("id")?;
    if lock_free(connection, ProjectId::new(id), Locked::Skipped).await?.is_some() {
        return Ok(End::Rollback(true));
    }
    let highest =
        sqlx::query("SELECT max(host) AS highest FROM mesh_addresses WHERE project_id = $1")
            .bind(id)
            .fetch_one(&mut *connection)
            .await?;
    let numbers = hydrate(&project, "id", cidr)?.extension(highest.try_get("highest")?);
    if numbers.is_empty() {
        return Ok(End::Rollback(false));
    }
    sqlx::query(
        "INSERT INTO mesh_addresses (project_id, host) WITH RECURSIVE numbers (host) AS \
         (SELECT $2 UNION ALL SELECT host + 1 FROM numbers WHERE host < $3) \
         SELECT $1, host FROM numbers",
    )
    .bind(id)
    .bind(*numbers.start())
    .bind(*numbers.end())
    .execute(connection)
    .await?;
    Ok(End::Commit(true))
}

/// Writes the new node into the row that its enrolment locked. The row of the
/// node exists.
pub(crate) async fn take(connection: &mut Connection, node: &Node) -> Result<(), Failure> {
    let MeshAddress { host, ip } = node.mesh;
    let taken = sqlx::query(
        "UPDATE mesh_addresses SET node_id = $3, hostname = $4, public_key = $5 \
         WHERE project_id = $1 AND host = $2 AND node_id IS NULL",
    )
    .bind(node.project_id.as_uuid())
    .bind(host)
    .bind(node.id.as_uuid())
    .bind(&node.hostname)
    .bind(&node.public_key[..])
    .execute(connection)
    .await?
    .rows_affected();
    if taken == 1 {
        return Ok(());
    }
    let problem = format!("the address {ip} is no longer free; enrol again");
    Err(Refusal::new(ErrorKind::RevisionStale, problem).into())
}

/// Frees the numbers of nodes that have left. The row of a node keeps the
/// address, for people.
pub(crate) async fn release(
    connection: &mut Connection,
    nodes: Vec<Uuid>,
) -> Result<(), sqlx::Error> {
    if nodes.is_empty() {
        return Ok(());
    }
    sqlx::query(sql!(
        "UPDATE mesh_addresses SET node_id = NULL, hostname = NULL, public_key = NULL \
         WHERE node_id ",
        (one_of "$1")
    ))
    .bind(IdList(nodes))
    .execute(connection)
    .await?;
    Ok(())
}

/// The free numbers of a project that is deleted go with it.
pub(crate) async fn clear(connection: &mut Connection, project: Uuid) -> Result<(), Failure> {
    sqlx::query("DELETE FROM mesh_addresses WHERE project_id = $1 AND node_id IS NULL")
        .bind(project)
        .execute(connection)
        .await?;
    Ok(())
}

/// Empties the pool if the project, whose row is locked and not written yet, gets
/// another network. The rule counted no node, but an enrolment may have begun
/// before: its row is waited for, and a node refuses the change.
pub(crate) async fn clear_if_unused(
    connection: &mut Connection,
    project: &Project,
) -> Result<(), Failure> {
    let id = project.id.as_uuid();
    let stored = sqlx::query("SELECT id, mesh_cidr FROM projects WHERE id = $1")
        .bind(id)
        .fetch_one(&mut *connection)
        .await?;
    let before = hydrate(&stored, "id", cidr)?;
    if before == project.mesh_cidr {
        return Ok(());
    }
    let nodes = sqlx::query(sql!(
        "SELECT node_id FROM mesh_addresses WHERE project_id = $1 ORDER BY host",
        for_update
    ))
    .bind(id)
    .fetch_all(&mut *connection)
    .await?;
    let mut taken = 0;
    for row in &nodes {
        taken += i64::from(row.try_get::<Option<Uuid>, _>("node_id")?.is_some());
    }
    if taken > 0 {
        return Err(mesh_in_use(project.name.as_str(), before, taken).into());
    }
    sqlx::query("DELETE FROM mesh_addresses WHERE project_id = $1")
        .bind(id)
        .execute(connection)
        .await?;
    Ok(())
}

/// How many registered nodes have an address of the project's mesh.
pub(crate) async fn live_nodes(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<i64, sqlx::Error> {
    let statement = "SELECT count(node_id) AS found FROM mesh_addresses WHERE project_id = $1";
    count(connection, statement, project.as_uuid()).await
}

/// A node with the peers that `$2` limits, in one row: 256 rows would cost more to
/// hand over than to find.
const VIEW: &str = concat!(
    "SELECT ",
    node_columns!(),
    ", (SELECT mesh_cidr FROM projects WHERE projects.id = nodes.project_id) AS mesh_cidr, (SELECT ",
    sql!(json_rows, "(", json_array, "(", (uuid_text "node_id"), ", host, hostname, "),
    sql!((hex_of "public_key"), ")) FROM (SELECT node_id, host, hostname, public_key "),
    "FROM mesh_addresses m WHERE m.project_id = nodes.project_id AND m.node_id <> nodes.id \
     ORDER BY m.host LIMIT $2) AS peers) AS peers FROM nodes WHERE id = $1"
);

/// A node and its peers. It reads without a lock: peers come and go anyway.
pub(crate) async fn view(
    connection: &mut Connection,
    (id, limit): (NodeId, u32),
) -> Result<Option<MeshView>, Failure> {
    let row = sqlx::query(VIEW)
        .bind(id.as_uuid())
        .bind(i64::from(limit))
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let node = hydrate(&row, "id", super::hydrate::node)?;
    let cidr = hydrate(&row, "id", cidr)?;
    let peers: Option<Json<Vec<PeerRow>>> = row.try_get("peers")?;
    let peers = peers.into_iter().flat_map(|Json(peers)| peers);
    let peers = peers.filter_map(|row| or_left_out(NodeId::KIND, row.0, peer(row, cidr))).collect();
    Ok(Some(MeshView { cidr, node, peers }))
}

/// Node, host number, host name and public key in hexadecimal.
#[derive(Deserialize)]
struct PeerRow(Uuid, i64, String, String);

fn peer(PeerRow(id, host, hostname, key): PeerRow, cidr: MeshCidr) -> Result<Peer, Fault> {
    let mut public_key = [0; 32];
    let decoded = HEXLOWER_PERMISSIVE.decode_len(key.len()).is_ok_and(|length| {
        length == public_key.len()
            && HEXLOWER_PERMISSIVE.decode_mut(key.as_bytes(), &mut public_key).is_ok()
    });
    if !decoded {
        return Err(Fault::new("public_key", "must have 32 bytes"));
    }
    let ip = cidr.address(host);
    Ok(Peer {
        id: NodeId::new(id),
        hostname,
        public_key,
        ip: ip.ok_or_else(|| Fault::new("host", "is no number of the project's mesh"))?,
    })
}

/// The network of a project; a seeded project has none of its own.
pub(crate) fn cidr(row: &Row) -> Result<MeshCidr, Fault> {
    let Some(text) = rows::get::<Option<String>>(row, "mesh_cidr")? else {
        return Ok(MeshCidr::DEFAULT);
    };
    MeshCidr::parse("mesh_cidr", &text).map_err(|error| Fault::new("mesh_cidr", error.problem))
}

/// The address of a node.
pub(crate) fn address(row: &Row) -> Result<MeshAddress, Fault> {
    let text: String = rows::get(row, "mesh_ip")?;
    let ip = text.parse().map_err(|_| Fault::new("mesh_ip", "is no address"))?;
    Ok(MeshAddress { host: rows::get(row, "mesh_host")?, ip })
}
