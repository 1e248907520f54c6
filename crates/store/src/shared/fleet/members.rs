//! What of Fleet goes with a container, locked in the order of all locks, by a statement for
//! each table.

use std::collections::HashMap;

use slipway_core::deletion::record::Deletion;
use slipway_core::fleet::agent::HeldStack;
use slipway_core::fleet::members::{AgentMember, MemberRow, Members, StackMember};
use slipway_core::ids::{Revision, StackId};
use slipway_core::subject::{Subject, SubjectKind};
use sqlx::Row as _;
use uuid::Uuid;

use super::deletion::hydrate::deletion;
use super::deletion::reads::select_deletions;
use super::page::hydrate;
use super::rollouts::reads;
use super::{Connection, Row};
use crate::failure::Failure;

/// The live rows of a table in a container, locked.
macro_rules! live {
    ($columns:literal, $table:literal, $container:literal) => {
        sql!(
            "SELECT ",
            $columns,
            " FROM ",
            $table,
            " WHERE ",
            $container,
            " = $1 AND deleted_at IS NULL ORDER BY id",
            for_update
        )
    };
}

/// Deletions that wait for their grace, of what is in a container.
macro_rules! scheduled {
    ($things:literal) => {
        concat!(
            select_deletions!(),
            "WHERE state = 'scheduled' AND target_id IN (",
            $things,
            ") ORDER BY id"
        )
    };
}

/// The live members of this container: none if it is no container.
pub(crate) async fn of(
    connection: &mut Connection,
    container: Subject,
) -> Result<Members, Failure> {
    let id = container.id;
    let mut members = Members::default();
    match container.kind {
        SubjectKind::Project => {
            members.agents = agents(connection, id).await?;
            let generators = live!("id, revision, name", "generators", "project_id");
            let templates = live!("id, revision, name", "fleet_templates", "project_id");
            let stacks = live!("id, revision, name, last_sequence", "stacks", "project_id");
            let found = sqlx::query(generators).bind(id).fetch_all(&mut *connection).await?;
            members.others = rows(SubjectKind::Generator, &found)?;
            members.stacks = stacks_of(connection, stacks, id).await?;
            let found = sqlx::query(templates).bind(id).fetch_all(&mut *connection).await?;
            members.others.extend(rows(SubjectKind::Template, &found)?);
            let waiting = scheduled!(
                "SELECT id FROM generators WHERE project_id = $1 AND deleted_at IS NULL UNION ALL \
                 SELECT id FROM stacks WHERE project_id = $1 AND deleted_at IS NULL UNION ALL \
                 SELECT id FROM fleet_templates WHERE project_id = $1 AND deleted_at IS NULL \
                 UNION ALL SELECT id FROM fleet_agents \
                 WHERE project_id = $1 AND deleted_at IS NULL"
            );
            members.scheduled = waiting_for_grace(connection, waiting, id).await?;
            members.rollouts = reads::under_way(connection, reads::OF_PROJECT, id).await?;
        }
        SubjectKind::Generator => {
            let stacks = live!("id, revision, name, last_sequence", "stacks", "generator_id");
            let templates = live!("id, revision, name", "fleet_templates", "generator_id");
            members.stacks = stacks_of(connection, stacks, id).await?;
            let found = sqlx::query(templates).bind(id).fetch_all(&mut *connection).await?;
            members.others = rows(SubjectKind::Template, &found)?;
            let waiting = scheduled!(
                "SELECT id FROM stacks WHERE generator_id = $1 AND deleted_at IS NULL UNION ALL \
                 SELECT id FROM fleet_templates WHERE generator_id = $1 AND deleted_at IS NULL"
            );
            members.scheduled = waiting_for_grace(connection, waiting, id).await?;
            members.rollouts = reads::under_way(connection, reads::OF_GENERATOR, id).await?;
        }
        _ => {}
    }
    Ok(members)
}

fn row(kind: SubjectKind, row: &Row) -> Result<MemberRow, sqlx::Error> {
    Ok(MemberRow {
        subject: Subject::new(kind, row.try_get("id")?),
        revision: Revision(row.try_get("revision")?),
        name: row.try_get("name")?,
    })
}

fn rows(kind: SubjectKind, found: &[Row]) -> Result<Vec<MemberRow>, sqlx::Error> {
    found.iter().map(|found| row(kind, found)).collect()
}

async fn stacks_of(
    connection: &mut Connection,
    statement: &'static str,
    container: Uuid,
) -> Result<Vec<StackMember>, Failure> {
    let found = sqlx::query(statement).bind(container).fetch_all(connection).await?;
    let stack = |found: &Row| {
        let last_sequence = found.try_get("last_sequence")?;
        Ok(StackMember { row: row(SubjectKind::Stack, found)?, last_sequence })
    };
    Ok(found.iter().map(stack).collect::<Result<_, sqlx::Error>>()?)
}

async fn waiting_for_grace(
    connection: &mut Connection,
    statement: &'static str,
    container: Uuid,
) -> Result<Vec<Deletion>, Failure> {
    let found = sqlx::query(statement).bind(container).fetch_all(connection).await?;
    found.iter().map(|row| hydrate(row, "d_id", deletion)).collect()
}

/// The agents of a project with what each of them holds.
async fn agents(connection: &mut Connection, project: Uuid) -> Result<Vec<AgentMember>, Failure> {
    let agents = live!("id, revision, name, cluster_name", "fleet_agents", "project_id");
    let agents = sqlx::query(agents).bind(project).fetch_all(&mut *connection).await?;
    let found = sqlx::query(
        "SELECT h.agent_id, s.id, s.name FROM holdings h JOIN stacks s ON s.id = h.stack_id \
         JOIN fleet_agents a ON a.id = h.agent_id WHERE a.project_id = $1 \
         AND a.deleted_at IS NULL AND h.released_at IS NULL ORDER BY s.id",
    )
    .bind(project)
    .fetch_all(connection)
    .await?;
    let mut held: HashMap<Uuid, Vec<HeldStack>> = HashMap::new();
    for row in &found {
        let stack = HeldStack { id: StackId::new(row.try_get("id")?), name: row.try_get("name")? };
        held.entry(row.try_get("agent_id")?).or_default().push(stack);
    }
    let agent = |found: &Row| {
        let row = row(SubjectKind::Agent, found)?;
        let held = held.remove(&row.subject.id).unwrap_or_default();
        Ok(AgentMember { row, cluster_name: found.try_get("cluster_name")?, held })
    };
    Ok(agents.iter().map(agent).collect::<Result<_, sqlx::Error>>()?)
}

/// The names of live agents that hold this stack, or one of this generator, and cannot let go.
pub(crate) async fn unable(
    connection: &mut Connection,
    target: Subject,
) -> Result<Vec<String>, Failure> {
    const LIMIT: i64 = 100;
    let found = sqlx::query(
        "SELECT DISTINCT a.name FROM holdings h JOIN stacks s ON s.id = h.stack_id \
         JOIN fleet_agents a ON a.id = h.agent_id WHERE (s.id = $1 OR s.generator_id = $1) \
         AND s.deleted_at IS NULL AND h.released_at IS NULL AND a.deleted_at IS NULL \
         AND a.can_keep = 0 ORDER BY a.name LIMIT $2",
    )
    .bind(target.id)
    .bind(LIMIT)
    .fetch_all(connection)
    .await?;
    Ok(found.iter().map(|row| row.try_get("name")).collect::<Result<_, sqlx::Error>>()?)
}
