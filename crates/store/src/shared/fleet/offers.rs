//! What agents are offered: the facts of an offer by one statement, holdings, and how far
//! agents are with a deletion.

use serde::Deserialize;
use slipway_core::fleet::agent::Agent;
use slipway_core::fleet::offer::{
    Candidate, Delivery, HeldOffer, InRollout, Legs, ObjectFact, OfferSnapshot, Offered,
};
use slipway_core::fleet::per_agent::Rendered;
use slipway_core::ids::{AgentId, DeletionId, DeploymentObjectId, StackId};
use slipway_core::operations::control::Mode;
use slipway_core::rollouts::record::MemberState;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::agent::agent_columns;
use super::operations::control::{mode_columns, mode_parts};
use super::table::{self, Table as _};
use super::transaction::Load;
use super::{Connection, Row, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;
use crate::micros::Micros;

/// The agent `$1`, the mode, what the agent holds, how many live stacks it is associated with,
/// and of how many of these it holds the newest content. A number rises with every object of a
/// stack, and a holding has one only of content for all agents: so the content that has the last
/// number of its stack is the newest, and nobody withdrew it, since that makes another one.
/// Finding that touches no object. Stacks are found from the side of the agent by their ids: a
/// generator may have many that are not for this agent.
const HOLDINGS: &str = concat!(
    "SELECT ",
    agent_columns!(),
    ", ",
    mode_columns!(),
    ", (SELECT ",
    sql!(json_rows, "(", (uuid_text "object_id"), ")"),
    " FROM holdings WHERE agent_id = $1 AND released_at IS NULL) AS held, w.wanted, w.current \
     FROM control c LEFT JOIN fleet_agents a ON a.id = $1 AND a.deleted_at IS NULL \
     CROSS JOIN (SELECT count(*) AS wanted, coalesce(sum(CASE WHEN s.rollout_id IS NULL \
        AND (s.id, s.last_sequence) IN (SELECT h.stack_id, h.sequence_id FROM holdings h \
            WHERE h.agent_id = $1 AND h.released_at IS NULL AND h.sequence_id IS NOT NULL) \
        THEN 1 ELSE 0 END), 0) AS current FROM stacks s WHERE s.id ",
    one_of!(
        "SELECT stack_id FROM fleet_targets WHERE agent_id = $1 \
         UNION SELECT sl.owner_id FROM fleet_labels al JOIN fleet_labels sl \
            ON sl.label = al.label AND sl.owner_kind = 'stack' WHERE al.owner_id = $1 \
         UNION SELECT sa.owner_id FROM fleet_annotations aa JOIN fleet_annotations sa \
            ON sa.key = aa.key AND sa.value = aa.value AND sa.owner_kind = 'stack' \
            WHERE aa.owner_id = $1"
    ),
    // In a CASE, so that PostgreSQL does not read the stacks once for each registration.
    " AND s.deleted_at IS NULL AND CASE WHEN s.generator_id IN (SELECT generator_id \
        FROM fleet_registrations WHERE agent_id = $1) THEN 1 ELSE 0 END = 1) w \
     WHERE c.singleton = 1"
);

/// What an agent holds, and how much of it is what it should have.
pub(crate) async fn holdings(
    connection: &mut Connection,
    id: AgentId,
) -> Result<HeldOffer, Failure> {
    let row = sqlx::query(HOLDINGS).bind(id.as_uuid()).fetch_one(connection).await?;
    let corrupt = |fault| Failure::Corrupt { id: id.as_uuid(), fault };
    let (now, freeze, observing) = mode_parts(&row).map_err(corrupt)?;
    let is_there = row.try_get::<Option<Uuid>, _>("id")?.is_some();
    let agent = is_there.then(|| Agent::read(&row)).transpose().map_err(corrupt)?;
    let held: Option<Json<Vec<Uuid>>> = row.try_get("held")?;
    let held = held.into_iter().flat_map(|Json(held)| held);
    let count = |column| {
        let counted: i64 = row.try_get(column)?;
        Ok::<_, sqlx::Error>(usize::try_from(counted).unwrap_or_default())
    };
    Ok(HeldOffer {
        mode: Mode::at(now, freeze, observing),
        agent,
        held: held.map(DeploymentObjectId::new).collect(),
        wanted: count("wanted")?,
        current: count("current")?,
    })
}

/// The agent `$1`, the mode, and every stack that the agent is connected with or holds, in one
/// row: a row for each stack would cost more to hand over than to find. The connections are
/// found from the side of the agent, which has few labels, annotations and targets. What it holds
/// of a stack is found by the key of the holding: PostgreSQL joins by nested loops only, so a
/// join with the list of all holdings would take the square of their number. One statement, so
/// that its parts belong together.
const OFFER: &str = concat!(
    "WITH targeted AS (SELECT stack_id AS id FROM fleet_targets WHERE agent_id = $1), \
     labelled AS (SELECT DISTINCT sl.owner_id AS id FROM fleet_labels al JOIN fleet_labels sl \
        ON sl.label = al.label AND sl.owner_kind = 'stack' WHERE al.owner_id = $1), \
     annotated AS (SELECT DISTINCT sa.owner_id AS id FROM fleet_annotations aa \
        JOIN fleet_annotations sa ON sa.key = aa.key AND sa.value = aa.value \
        AND sa.owner_kind = 'stack' WHERE aa.owner_id = $1), \
     registered AS (SELECT generator_id FROM fleet_registrations WHERE agent_id = $1), \
     candidates AS (SELECT id FROM targeted UNION SELECT id FROM labelled \
        UNION SELECT id FROM annotated UNION SELECT stack_id FROM holdings \
            WHERE agent_id = $1 AND released_at IS NULL), \
     facts AS (SELECT s.id, s.last_sequence, n.id AS newest_id, o.id AS held_id, \
        CASE WHEN s.deleted_at IS NULL THEN 1 ELSE 0 END \
        + CASE WHEN s.generator_id IN (SELECT generator_id FROM registered) THEN 2 ELSE 0 END \
        + CASE WHEN s.id IN (SELECT id FROM targeted) THEN 4 ELSE 0 END \
        + CASE WHEN s.id IN (SELECT id FROM labelled) THEN 8 ELSE 0 END \
        + CASE WHEN s.id IN (SELECT id FROM annotated) THEN 16 ELSE 0 END \
        + coalesce(n.is_deletion_marker, 0) * 32 + coalesce(n.keeps, 0) * 64 \
        + coalesce(o.is_deletion_marker, 0) * 128 \
        + CASE WHEN o.agent_id IS NULL THEN 0 ELSE 256 END \
        + CASE WHEN o.erased_at IS NULL THEN 0 ELSE 512 END \
        + CASE WHEN o.withdrawn_at IS NULL THEN 0 ELSE 1024 END \
        + CASE WHEN s.rollout_id IS NULL THEN 0 ELSE 2048 END \
        + s.rolls_back * 4096 + CASE WHEN n.per_agent IS NULL THEN 0 ELSE 8192 END \
        + CASE WHEN f.tags = (SELECT tags FROM fleet_agents WHERE id = $1) THEN 16384 ELSE 0 END \
        AS flags, z.id AS settled_id, m.state AS member, \
        f.object_id AS rendered_id \
        FROM candidates c JOIN stacks s ON s.id = c.id \
        LEFT JOIN deployment_objects n ON n.id = (SELECT x.id FROM deployment_objects x \
            WHERE x.stack_id = s.id AND x.agent_id IS NULL AND x.withdrawn_at IS NULL \
            ORDER BY x.sequence_id DESC LIMIT 1) \
        LEFT JOIN holdings h ON h.agent_id = $1 AND h.stack_id = s.id AND h.released_at IS NULL \
        LEFT JOIN deployment_objects o ON o.id = h.object_id \
        LEFT JOIN deployment_objects z ON z.id = s.settled_object_id \
            AND z.withdrawn_at IS NULL AND z.erased_at IS NULL AND z.per_agent IS NULL \
        LEFT JOIN fleet_renderings f ON f.agent_id = $1 AND f.base_id = n.id \
        LEFT JOIN rollout_members m ON m.rollout_id = s.rollout_id AND m.subject_id = $1) \
     SELECT ",
    agent_columns!(),
    ", ",
    mode_columns!(),
    ", (SELECT ",
    sql!(json_rows, "(", json_array, "(", (uuid_text "id"), ", last_sequence, flags, "),
    sql!("CASE WHEN newest_id IS NOT NULL THEN ", (uuid_text "newest_id"), " END, "),
    sql!("CASE WHEN held_id IS NOT NULL THEN ", (uuid_text "held_id"), " END, "),
    sql!("CASE WHEN settled_id IS NOT NULL THEN ", (uuid_text "settled_id"), " END, "),
    sql!("CASE WHEN rendered_id IS NOT NULL THEN ", (uuid_text "rendered_id"), " END, "),
    "member)) FROM facts) ",
    "AS candidates, a.tags FROM control c LEFT JOIN fleet_agents a \
     ON a.id = $1 AND a.deleted_at IS NULL WHERE c.singleton = 1"
);

/// A stack, the number of its last object, the flags of [`OFFER`], its newest object, the one
/// that the agent holds, the one that all had, what the newest is for the agent, and where the
/// agent stands in the roll-out.
#[derive(Deserialize)]
struct CandidateRow(
    Uuid,
    i64,
    i64,
    Option<Uuid>,
    Option<Uuid>,
    Option<Uuid>,
    Option<Uuid>,
    Option<String>,
);

fn candidate(row: CandidateRow) -> Result<Candidate, Fault> {
    let CandidateRow(id, last_sequence, flags, newest, held, settled, rendered, member) = row;
    let flag = |bit: i64| flags & bit != 0;
    let state = |text: String| {
        let problem = || format!("is `{text}`, which this version does not know");
        MemberState::parse(&text).ok_or_else(|| Fault::new("member", problem()))
    };
    let member = member.map(state).transpose()?;
    let in_rollout = InRollout {
        may_take: InRollout::takes(member, flag(4096)),
        settled: settled.map(DeploymentObjectId::new),
    };
    Ok(Candidate {
        stack_id: StackId::new(id),
        is_live: flag(1),
        legs: Legs {
            is_registered: flag(2),
            has_target: flag(4),
            shares_label: flag(8),
            shares_annotation: flag(16),
        },
        last_sequence,
        newest: newest.map(|id| ObjectFact {
            id: DeploymentObjectId::new(id),
            is_marker: flag(32),
            keeps: flag(64),
            is_for_agent: false,
            is_erased: false,
            is_withdrawn: false,
        }),
        rendered: match (flag(8192), flag(16384), rendered) {
            (false, _, _) => Rendered::NotNeeded,
            (true, false, _) => Rendered::Missing,
            (true, true, None) => Rendered::Failed,
            (true, true, Some(id)) => Rendered::As(DeploymentObjectId::new(id)),
        },
        held: held.map(|id| ObjectFact {
            id: DeploymentObjectId::new(id),
            is_marker: flag(128),
            keeps: false,
            is_for_agent: flag(256),
            is_erased: flag(512),
            is_withdrawn: flag(1024),
        }),
        in_rollout: flag(2048).then_some(in_rollout),
    })
}

/// What an agent is connected with and holds, by one statement.
pub(crate) async fn read(
    connection: &mut Connection,
    id: AgentId,
) -> Result<OfferSnapshot, Failure> {
    let row = sqlx::query(OFFER).bind(id.as_uuid()).fetch_one(connection).await?;
    let corrupt = |fault| Failure::Corrupt { id: id.as_uuid(), fault };
    let (now, freeze, observing) = mode_parts(&row).map_err(corrupt)?;
    let mut snapshot = OfferSnapshot {
        now,
        mode: Mode::at(now, freeze, observing),
        agent: None,
        tags: 0,
        candidates: Vec::new(),
    };
    if row.try_get::<Option<Uuid>, _>("id")?.is_some() {
        snapshot.agent = Some(Agent::read(&row).map_err(corrupt)?);
        snapshot.tags = row.try_get("tags")?;
        let found: Option<Json<Vec<CandidateRow>>> = row.try_get("candidates")?;
        let found = found.into_iter().flat_map(|Json(found)| found);
        let found = found.map(candidate).collect::<Result<_, _>>();
        snapshot.candidates = found.map_err(corrupt)?;
        snapshot.candidates.sort_unstable_by_key(|one| one.stack_id);
    }
    Ok(snapshot)
}

/// The offer of an agent. Locks the agent, so that two polls of it write one after the other,
/// and then every stack whose holding would change, so that none of them is deleted between
/// the decision and the commit.
pub(crate) struct OfferOf(pub(crate) AgentId);

impl Load for OfferOf {
    type Snapshot = OfferSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<OfferSnapshot, Failure> {
        table::lock::<Agent>(connection, &self.0.to_string()).await?;
        let first = read(connection, self.0).await?;
        let changed: IdList = first.changed().collect();
        if changed.0.is_empty() {
            return Ok(first);
        }
        sqlx::query(
            sql!("SELECT id FROM stacks WHERE id ", (one_of "$1"), " ORDER BY id", for_share),
        )
        .bind(changed)
        .fetch_all(&mut *connection)
        .await?;
        read(connection, self.0).await
    }
}

/// Writes holdings as far as they are not as they should be, with the numbers of contents for
/// all agents. One statement, whatever their number; a stack that the agent removed before is
/// held again.
pub(crate) async fn hold(connection: &mut Connection, offered: &[Offered]) -> Result<(), Failure> {
    const HOLD: &str = concat!(
        "INSERT INTO holdings (agent_id, stack_id, object_id, sequence_id, offered_at) \
         SELECT given.agent_id, given.stack_id, given.object_id, (SELECT o.sequence_id \
            FROM deployment_objects o WHERE o.id = given.object_id AND o.agent_id IS NULL \
            AND o.is_deletion_marker = 0), ",
        sql!(now),
        " FROM ",
        rows_from_json!(agent_id: uuid, stack_id: uuid, object_id: uuid),
        " WHERE NOT EXISTS (SELECT 1 FROM holdings h WHERE h.agent_id = given.agent_id \
            AND h.stack_id = given.stack_id AND h.object_id = given.object_id \
            AND h.released_at IS NULL) \
         ON CONFLICT (agent_id, stack_id) DO UPDATE SET object_id = excluded.object_id, \
         sequence_id = excluded.sequence_id, offered_at = excluded.offered_at, released_at = NULL"
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
