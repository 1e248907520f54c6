//! What agents are offered: the facts of an offer by one statement, holdings, and how far
//! agents are with a deletion.

use slipway_core::fleet::agent::Agent;
use slipway_core::fleet::offer::{
    Candidate, Delivery, Legs, ObjectFact, Offer, OfferSnapshot, Offered, offer,
};
use slipway_core::ids::{AgentId, DeletionId, DeploymentObjectId, StackId};
use slipway_core::operations::control::Mode;
use sqlx::Row as _;
use uuid::Uuid;

use super::operations::control;
use super::page::fetch_one;
use super::table::{self, Table as _};
use super::transaction::Load;
use super::{Connection, Row, writes};
use crate::failure::Failure;
use crate::id_list::IdList;
use crate::micros::Micros;

/// Every stack that the agent `$1` is connected with or holds. The connections are found from
/// the side of the agent, which has few labels, annotations and targets.
pub(crate) const CANDIDATES: &str = "WITH targeted AS (SELECT stack_id AS id FROM fleet_targets \
        WHERE agent_id = $1), \
     labelled AS (SELECT DISTINCT sl.owner_id AS id FROM fleet_labels al JOIN fleet_labels sl \
        ON sl.label = al.label AND sl.owner_kind = 'stack' WHERE al.owner_id = $1), \
     annotated AS (SELECT DISTINCT sa.owner_id AS id FROM fleet_annotations aa \
        JOIN fleet_annotations sa ON sa.key = aa.key AND sa.value = aa.value \
        AND sa.owner_kind = 'stack' WHERE aa.owner_id = $1), \
     held AS (SELECT stack_id AS id, object_id FROM holdings \
        WHERE agent_id = $1 AND released_at IS NULL), \
     registered AS (SELECT generator_id FROM fleet_registrations WHERE agent_id = $1), \
     candidates AS (SELECT id FROM targeted UNION SELECT id FROM labelled \
        UNION SELECT id FROM annotated UNION SELECT id FROM held) \
     SELECT s.id, s.last_sequence, \
        CASE WHEN s.deleted_at IS NULL THEN 1 ELSE 0 END AS live, \
        CASE WHEN s.generator_id IN (SELECT generator_id FROM registered) THEN 1 ELSE 0 END \
            AS registered, \
        CASE WHEN s.id IN (SELECT id FROM targeted) THEN 1 ELSE 0 END AS targeted, \
        CASE WHEN s.id IN (SELECT id FROM labelled) THEN 1 ELSE 0 END AS labelled, \
        CASE WHEN s.id IN (SELECT id FROM annotated) THEN 1 ELSE 0 END AS annotated, \
        n.id AS newest_id, n.is_deletion_marker AS newest_marker, \
        o.id AS held_id, o.is_deletion_marker AS held_marker, \
        CASE WHEN o.agent_id IS NULL THEN 0 ELSE 1 END AS held_own \
     FROM candidates c JOIN stacks s ON s.id = c.id \
     LEFT JOIN deployment_objects n ON n.id = (SELECT x.id FROM deployment_objects x \
        WHERE x.stack_id = s.id AND x.agent_id IS NULL AND x.withdrawn_at IS NULL \
        ORDER BY x.sequence_id DESC LIMIT 1) \
     LEFT JOIN held h ON h.id = s.id LEFT JOIN deployment_objects o ON o.id = h.object_id \
     ORDER BY s.id";

fn candidate(row: &Row) -> Result<Candidate, sqlx::Error> {
    let flag = |column| row.try_get::<i32, _>(column).map(|value| value != 0);
    let object = |id, marker| {
        let found: Option<Uuid> = row.try_get(id)?;
        Ok::<_, sqlx::Error>(match found {
            Some(id) => Some(ObjectFact {
                id: DeploymentObjectId::new(id),
                is_marker: row.try_get::<i32, _>(marker)? != 0,
                is_for_agent: false,
            }),
            None => None,
        })
    };
    let is_for_agent = flag("held_own")?;
    let held = object("held_id", "held_marker")?;
    Ok(Candidate {
        stack_id: StackId::new(row.try_get("id")?),
        is_live: flag("live")?,
        legs: Legs {
            is_registered: flag("registered")?,
            has_target: flag("targeted")?,
            shares_label: flag("labelled")?,
            shares_annotation: flag("annotated")?,
        },
        last_sequence: row.try_get("last_sequence")?,
        newest: object("newest_id", "newest_marker")?,
        held: held.map(|held| ObjectFact { is_for_agent, ..held }),
    })
}

async fn candidates(connection: &mut Connection, id: AgentId) -> Result<Vec<Candidate>, Failure> {
    let found = sqlx::query(CANDIDATES).bind(id.as_uuid()).fetch_all(connection).await?;
    Ok(found.iter().map(candidate).collect::<Result<_, _>>()?)
}

/// Reads in one transaction, so that the parts belong together.
pub(crate) async fn read(
    connection: &mut Connection,
    id: AgentId,
) -> Result<OfferSnapshot, Failure> {
    let reference = id.to_string();
    let agent = Agent::fetch_query(&reference, false);
    let agent = fetch_one(connection, agent, "id", Agent::read).await?;
    loaded(connection, id, agent).await
}

async fn loaded(
    connection: &mut Connection,
    id: AgentId,
    agent: Option<Agent>,
) -> Result<OfferSnapshot, Failure> {
    let candidates = match &agent {
        Some(_) => candidates(connection, id).await?,
        None => Vec::new(),
    };
    let control = control::fetch(connection, ()).await?;
    Ok(OfferSnapshot { now: control.now, mode: control.mode(), agent, candidates })
}

/// The offer of an agent. Locks the agent, so that two polls of it write one after the other,
/// and then every stack whose holding would change, so that none of them is deleted between
/// the decision and the commit.
pub(crate) struct OfferOf(pub(crate) AgentId);

impl Load for OfferOf {
    type Snapshot = OfferSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<OfferSnapshot, Failure> {
        let agent = table::lock::<Agent>(connection, &self.0.to_string()).await?;
        let first = loaded(connection, self.0, agent.clone()).await?;
        let is_frozen = matches!(first.mode, Mode::Frozen(_));
        let changes = |one: &&Candidate| match offer(one, is_frozen) {
            Offer::Nothing => false,
            Offer::Object(id) => one.held.is_none_or(|held| held.id != id),
            Offer::Release => true,
        };
        let changed: IdList =
            first.candidates.iter().filter(changes).map(|one| one.stack_id).collect();
        if changed.0.is_empty() {
            return Ok(first);
        }
        sqlx::query(
            sql!("SELECT id FROM stacks WHERE id ", (one_of "$1"), " ORDER BY id", for_share),
        )
        .bind(changed)
        .fetch_all(&mut *connection)
        .await?;
        loaded(connection, self.0, agent).await
    }
}

/// Writes holdings as far as they are not as they should be. One statement, whatever their
/// number; a stack that the agent removed before is held again.
pub(crate) async fn hold(connection: &mut Connection, offered: &[Offered]) -> Result<(), Failure> {
    const HOLD: &str = concat!(
        "INSERT INTO holdings (agent_id, stack_id, object_id, offered_at) \
         SELECT given.agent_id, given.stack_id, given.object_id, ",
        sql!(now),
        " FROM ",
        rows_from_json!(agent_id: uuid, stack_id: uuid, object_id: uuid),
        " WHERE NOT EXISTS (SELECT 1 FROM holdings h WHERE h.agent_id = given.agent_id \
            AND h.stack_id = given.stack_id AND h.object_id = given.object_id \
            AND h.released_at IS NULL) \
         ON CONFLICT (agent_id, stack_id) DO UPDATE SET object_id = excluded.object_id, \
         offered_at = excluded.offered_at, released_at = NULL"
    );
    let rows: Vec<_> = offered
        .iter()
        .map(|row| {
            json_row!(
                agent_id: uuid = row.agent_id,
                stack_id: uuid = row.stack_id,
                object_id: uuid = row.object_id,
            )
        })
        .collect();
    Ok(writes::write(connection, HOLD, &rows).await?)
}

/// Ends the holding of an agent that carried out the marker which it was offered last.
pub(crate) async fn release(
    connection: &mut Connection,
    agent: AgentId,
    object: DeploymentObjectId,
) -> Result<(), Failure> {
    sqlx::query(sql!(
        "UPDATE holdings SET released_at = ",
        now,
        " WHERE agent_id = $1 AND object_id = $2 AND released_at IS NULL \
         AND EXISTS (SELECT 1 FROM deployment_objects o \
            WHERE o.id = holdings.object_id AND o.is_deletion_marker = 1)"
    ))
    .bind(agent.as_uuid())
    .bind(object.as_uuid())
    .execute(connection)
    .await?;
    Ok(())
}

/// Of every stack of the deletion each agent that held it when it was deleted, or since.
pub(crate) async fn deliveries(
    connection: &mut Connection,
    (deletion, limit): (DeletionId, u32),
) -> Result<Vec<Delivery>, Failure> {
    let found = sqlx::query(
        "SELECT a.id AS agent_id, a.name AS agent, s.id AS stack_id, s.name AS stack, \
         h.released_at, CASE WHEN a.deleted_at IS NULL THEN 0 ELSE 1 END AS agent_deleted \
         FROM stacks s JOIN holdings h ON h.stack_id = s.id \
         JOIN fleet_agents a ON a.id = h.agent_id \
         WHERE s.deletion_id = $1 AND s.deleted_at IS NOT NULL \
         AND (h.released_at IS NULL OR h.released_at >= s.deleted_at) \
         ORDER BY s.name, a.name, a.id LIMIT $2",
    )
    .bind(deletion.as_uuid())
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    let delivery = |row: &Row| {
        Ok(Delivery {
            agent_id: AgentId::new(row.try_get("agent_id")?),
            agent: row.try_get("agent")?,
            stack_id: StackId::new(row.try_get("stack_id")?),
            stack: row.try_get("stack")?,
            removed_at: row.try_get::<Option<Micros>, _>("released_at")?.map(Into::into),
            is_agent_deleted: row.try_get::<i32, _>("agent_deleted")? != 0,
        })
    };
    found.iter().map(delivery).collect()
}
