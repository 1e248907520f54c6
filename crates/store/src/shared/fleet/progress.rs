//! Reads for explanations: agents beside stacks, and how many agents hold what. Without locks;
//! nothing is decided on them.

use slipway_app::fleet::port::PairsOf;
use slipway_core::fleet::agent::AgentStatus;
use slipway_core::fleet::offer::{InRollout, Legs};
use slipway_core::fleet::progress::{
    AgentLine, HeldLine, LastReport, ObjectLine, Pair, StackCounts, StackLine,
};
use slipway_core::fleet::report::ReportStatus;
use slipway_core::ids::{AgentId, DeploymentObjectId, GeneratorId, StackId};
use slipway_core::rollouts::record::MemberState;
use uuid::Uuid;

use super::page::hydrate;
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;

/// The newest object of a stack for all agents that nobody withdrew.
macro_rules! newest_of {
    ($stack:literal) => {
        concat!(
            "(SELECT x.id FROM deployment_objects x WHERE x.stack_id = ",
            $stack,
            " AND x.agent_id IS NULL AND x.withdrawn_at IS NULL \
              ORDER BY x.sequence_id DESC LIMIT 1)"
        )
    };
}

/// The last report of an agent about an object.
macro_rules! last_report {
    ($agent:literal, $object:literal) => {
        concat!(
            "(SELECT q.id FROM agent_reports q WHERE q.agent_id = ",
            $agent,
            " AND q.object_id = ",
            $object,
            " ORDER BY q.last_at DESC, q.id DESC LIMIT 1)"
        )
    };
}

/// From the side of one of the two, `$1`: its links and holdings, its labels and annotations,
/// and more pairs.
macro_rules! pairs {
    ($link:literal, $label:literal, $annotation:literal, $more:literal) => {
        concat!(
            "WITH pairs AS (SELECT agent_id, stack_id FROM fleet_targets WHERE ",
            $link,
            " UNION SELECT agent_id, stack_id FROM holdings WHERE released_at IS NULL AND ",
            $link,
            " UNION SELECT al.owner_id, sl.owner_id FROM fleet_labels al \
                JOIN fleet_labels sl ON sl.label = al.label AND sl.owner_kind = 'stack' \
                WHERE al.owner_kind = 'agent' AND ",
            $label,
            " UNION SELECT aa.owner_id, sa.owner_id FROM fleet_annotations aa \
                JOIN fleet_annotations sa ON sa.key = aa.key AND sa.value = aa.value \
                AND sa.owner_kind = 'stack' WHERE aa.owner_kind = 'agent' AND ",
            $annotation,
            $more,
            ") SELECT a.id AS agent_id, a.name AS agent, a.cluster_name, a.status, \
                a.last_heartbeat, a.can_keep, s.id AS stack_id, s.name AS stack, s.deleted_at, \
                CASE WHEN EXISTS (SELECT 1 FROM fleet_registrations r WHERE r.agent_id = a.id \
                    AND r.generator_id = s.generator_id) THEN 1 ELSE 0 END AS registered, \
                CASE WHEN EXISTS (SELECT 1 FROM fleet_targets t WHERE t.agent_id = a.id \
                    AND t.stack_id = s.id) THEN 1 ELSE 0 END AS targeted, \
                CASE WHEN EXISTS (SELECT 1 FROM fleet_labels al JOIN fleet_labels sl \
                    ON sl.label = al.label AND sl.owner_id = s.id WHERE al.owner_id = a.id) \
                    THEN 1 ELSE 0 END AS labelled, \
                CASE WHEN EXISTS (SELECT 1 FROM fleet_annotations aa JOIN fleet_annotations sa \
                    ON sa.key = aa.key AND sa.value = aa.value AND sa.owner_id = s.id \
                    WHERE aa.owner_id = a.id) THEN 1 ELSE 0 END AS annotated, \
                coalesce(f.object_id, n.id) AS newest_id, n.sequence_id AS newest_sequence, \
                n.is_deletion_marker AS newest_marker, n.keeps AS newest_keeps, \
                n.submitted_at AS newest_at, \
                o.id AS held_id, o.sequence_id AS held_sequence, \
                o.is_deletion_marker AS held_marker, o.keeps AS held_keeps, \
                o.submitted_at AS held_at, h.offered_at, \
                p.event_type, p.status AS report_status, p.message, p.last_at, \
                s.rollout_id, s.rolls_back, m.state AS member, \
                CASE WHEN f.tags = a.tags THEN f.problem END AS problem, f.made_at \
             FROM pairs x JOIN fleet_agents a ON a.id = x.agent_id AND a.deleted_at IS NULL \
             JOIN stacks s ON s.id = x.stack_id AND s.project_id = a.project_id \
             LEFT JOIN deployment_objects n ON n.id = ",
            newest_of!("s.id"),
            " LEFT JOIN fleet_renderings f ON f.base_id = n.id AND f.agent_id = a.id \
             LEFT JOIN holdings h ON h.agent_id = a.id AND h.stack_id = s.id \
                AND h.released_at IS NULL \
             LEFT JOIN deployment_objects o ON o.id = h.object_id \
             LEFT JOIN rollout_members m ON m.rollout_id = s.rollout_id AND m.subject_id = a.id \
             LEFT JOIN agent_reports p ON p.id = ",
            last_report!("a.id", "h.object_id"),
            " WHERE s.deleted_at IS NULL OR h.object_id IS NOT NULL \
             ORDER BY s.name, a.name, a.cluster_name, a.id LIMIT $2"
        )
    };
}

const OF_AGENT: &str = pairs!("agent_id = $1", "al.owner_id = $1", "aa.owner_id = $1", "");

/// With the agents that are registered with its generator and that nothing else connects.
const OF_STACK: &str = pairs!(
    "stack_id = $1",
    "sl.owner_id = $1",
    "sa.owner_id = $1",
    " UNION SELECT r.agent_id, g.id FROM fleet_registrations r \
        JOIN stacks g ON g.generator_id = r.generator_id WHERE g.id = $1"
);

pub(crate) async fn pairs(
    connection: &mut Connection,
    (of, limit): (PairsOf, u32),
) -> Result<Vec<Pair>, Failure> {
    let (statement, id) = match of {
        PairsOf::Agent(id) => (OF_AGENT, id.as_uuid()),
        PairsOf::Stack(id) => (OF_STACK, id.as_uuid()),
    };
    let query = sqlx::query(statement).bind(id).bind(i64::from(limit));
    let found = query.fetch_all(connection).await?;
    found.iter().map(|row| hydrate(row, "stack_id", pair)).collect()
}

const NEWEST: [&str; 5] =
    ["newest_id", "newest_sequence", "newest_marker", "newest_keeps", "newest_at"];
const OFFERED_LAST: [&str; 5] =
    ["held_id", "held_sequence", "held_marker", "held_keeps", "held_at"];

fn pair(row: &Row) -> Result<Pair, Fault> {
    let flag = |column| rows::get::<i32>(row, column).map(|value| value != 0);
    let held = match object(row, OFFERED_LAST)? {
        Some(object) => Some(HeldLine {
            object,
            offered_at: rows::time(row, "offered_at")?,
            report: report(row)?,
        }),
        None => None,
    };
    let rolls = rows::get::<Option<Uuid>>(row, "rollout_id")?.is_some();
    let member = match rows::get::<Option<String>>(row, "member")? {
        Some(_) => Some(rows::member(row, "member", MemberState::parse)?),
        None => None,
    };
    Ok(Pair {
        agent: AgentLine {
            id: AgentId::new(rows::get(row, "agent_id")?),
            name: rows::get(row, "agent")?,
            cluster_name: rows::get(row, "cluster_name")?,
            status: rows::member(row, "status", AgentStatus::parse)?,
            heartbeat_at: rows::time_or_null(row, "last_heartbeat")?,
            can_keep: flag("can_keep")?,
        },
        stack: stack(row)?,
        legs: Legs {
            is_registered: flag("registered")?,
            has_target: flag("targeted")?,
            shares_label: flag("labelled")?,
            shares_annotation: flag("annotated")?,
        },
        newest: object(row, NEWEST)?,
        held,
        is_outside: rolls && !InRollout::takes(member, flag("rolls_back")?),
        problem: match rows::get::<Option<String>>(row, "problem")? {
            Some(problem) => Some((problem, rows::time(row, "made_at")?)),
            None => None,
        },
    })
}

fn stack(row: &Row) -> Result<StackLine, Fault> {
    Ok(StackLine {
        id: StackId::new(rows::get(row, "stack_id")?),
        name: rows::get(row, "stack")?,
        deleted_at: rows::time_or_null(row, "deleted_at")?,
    })
}

fn object(
    row: &Row,
    [id, sequence, marker, keeps, at]: [&'static str; 5],
) -> Result<Option<ObjectLine>, Fault> {
    let Some(id) = rows::get::<Option<Uuid>>(row, id)? else { return Ok(None) };
    Ok(Some(ObjectLine {
        id: DeploymentObjectId::new(id),
        sequence: rows::get(row, sequence)?,
        is_marker: rows::get::<i32>(row, marker)? != 0,
        keeps: rows::get::<i32>(row, keeps)? != 0,
        submitted_at: rows::time(row, at)?,
    }))
}

fn report(row: &Row) -> Result<Option<LastReport>, Fault> {
    let Some(event_type) = rows::get::<Option<String>>(row, "event_type")? else {
        return Ok(None);
    };
    Ok(Some(LastReport {
        event_type,
        status: rows::member(row, "report_status", ReportStatus::parse)?,
        message: rows::get(row, "message")?,
        at: rows::time(row, "last_at")?,
    }))
}

pub(crate) async fn counts(
    connection: &mut Connection,
    (of, limit): (GeneratorId, u32),
) -> Result<Vec<StackCounts>, Failure> {
    let statement = concat!(
        "SELECT s.id AS stack_id, s.name AS stack, s.deleted_at, count(a.id) AS held, \
         coalesce(sum(CASE WHEN a.id IS NOT NULL AND s.deleted_at IS NULL \
            AND h.object_id = coalesce(f.object_id, n.id) AND n.is_deletion_marker = 0 THEN 1 ELSE 0 END), 0) AS newest, \
         coalesce(sum(CASE WHEN a.id IS NOT NULL AND p.status = 'FAILURE' THEN 1 ELSE 0 END), 0) \
            AS failed \
         FROM stacks s LEFT JOIN deployment_objects n ON n.id = ",
        newest_of!("s.id"),
        " LEFT JOIN holdings h ON h.stack_id = s.id AND h.released_at IS NULL \
         LEFT JOIN fleet_renderings f ON f.base_id = n.id AND f.agent_id = h.agent_id \
         LEFT JOIN fleet_agents a ON a.id = h.agent_id AND a.deleted_at IS NULL \
         LEFT JOIN agent_reports p ON p.id = ",
        last_report!("h.agent_id", "h.object_id"),
        " WHERE s.generator_id = $1 GROUP BY s.id, s.name, s.deleted_at \
         HAVING s.deleted_at IS NULL OR count(a.id) > 0 ORDER BY s.name, s.id LIMIT $2"
    );
    let query = sqlx::query(statement).bind(of.as_uuid()).bind(i64::from(limit));
    let found = query.fetch_all(connection).await?;
    let counts = |row: &Row| {
        let count = |column| {
            rows::get::<i64>(row, column).map(|count| u64::try_from(count).unwrap_or_default())
        };
        Ok(StackCounts {
            stack: stack(row)?,
            held: count("held")?,
            newest: count("newest")?,
            failed: count("failed")?,
        })
    };
    found.iter().map(|row| hydrate(row, "stack_id", counts)).collect()
}
