//! Reads roll-outs and their members.

use std::collections::BTreeMap;

use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_app::rollouts::port::{InWork, RolloutFilter};
use slipway_core::fleet::stack::Stack;
use slipway_core::ids::{ProjectId, Revision, RolloutId, WorkspaceId};
use slipway_core::rollouts::record::{
    Member, MemberState, Progress, Purpose, Rollout, RolloutState,
};
use slipway_core::rollouts::rules::{RolloutSnapshot, StartSnapshot};
use slipway_core::subject::{Subject, SubjectKind};
use sqlx::{QueryBuilder, Row as _};
use uuid::Uuid;

use super::deletion::marks;
use super::page::{after, as_id, fetch_one, hydrate, listed, now};
use super::topology::workspace;
use super::transaction::Load;
use super::{Connection, Db, Row, rows, table};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

macro_rules! select_rollouts {
    () => {
        "SELECT id, revision, purpose, subject_kind, subject_id, name, project_id, change, \
         strategy, state, message, requested_by, reason, requested_at, ended_at FROM rollouts "
    };
}

macro_rules! select_members {
    ($condition:literal) => {
        concat!(
            "SELECT subject_kind, subject_id, name, wave, position, state, before, changed_at, \
             message FROM rollout_members WHERE rollout_id = $1 AND ",
            $condition
        )
    };
}

fn rollout(row: &Row) -> Result<Rollout, Fault> {
    Ok(Rollout {
        id: RolloutId::new(rows::get(row, "id")?),
        revision: Revision(rows::get(row, "revision")?),
        purpose: rows::member(row, "purpose", Purpose::parse)?,
        subject: subject(row)?,
        name: rows::get(row, "name")?,
        project_id: rows::get::<Option<Uuid>>(row, "project_id")?.map(ProjectId::new),
        change: rows::json(row, "change")?,
        strategy: rows::json(row, "strategy")?,
        state: rows::member(row, "state", RolloutState::parse)?,
        message: rows::get(row, "message")?,
        requested_by: rows::get(row, "requested_by")?,
        reason: rows::get(row, "reason")?,
        requested_at: rows::time(row, "requested_at")?,
        ended_at: rows::time_or_null(row, "ended_at")?,
    })
}

fn subject(row: &Row) -> Result<Subject, Fault> {
    let kind = rows::member(row, "subject_kind", SubjectKind::parse)?;
    Ok(Subject::new(kind, rows::get(row, "subject_id")?))
}

fn member(row: &Row) -> Result<Member, Fault> {
    Ok(Member {
        subject: subject(row)?,
        name: rows::get(row, "name")?,
        wave: rows::get(row, "wave")?,
        position: rows::get(row, "position")?,
        state: rows::member(row, "state", MemberState::parse)?,
        before: rows::json(row, "before")?,
        changed_at: rows::time_or_null(row, "changed_at")?,
        message: rows::get(row, "message")?,
    })
}

pub(crate) async fn fetch(
    connection: &mut Connection,
    id: RolloutId,
) -> Result<Option<Rollout>, Failure> {
    let query = sqlx::query(concat!(select_rollouts!(), "WHERE id = $1")).bind(id.as_uuid());
    fetch_one(connection, query, "id", rollout).await
}

pub(crate) async fn list(
    connection: &mut Connection,
    (filter, page): (&RolloutFilter, Page<RolloutId>),
) -> Result<Listed<Rollout>, Failure> {
    let mut query: QueryBuilder<Db> = QueryBuilder::new(concat!(select_rollouts!(), "WHERE id > "));
    query.push_bind(after(page));
    if let Some(own) = filter.own {
        query.push(" AND project_id = ").push_bind(own.as_uuid());
    }
    if let Some(state) = filter.state {
        query.push(" AND state = ").push_bind(state.as_str());
    }
    if let Some(subject) = &filter.subject {
        match as_id(subject) {
            Some(id) => query.push(" AND subject_id = ").push_bind(id),
            None => query.push(" AND name = ").push_bind(subject.clone()),
        };
    }
    query.push(" ORDER BY id LIMIT ").push_bind(i64::from(page.limit));
    let found = query.build().fetch_all(connection).await?;
    Ok(listed(RolloutId::KIND, "id", &page, &found, rollout))
}

pub(crate) async fn progress(
    connection: &mut Connection,
    ids: &[RolloutId],
) -> Result<BTreeMap<RolloutId, Progress>, Failure> {
    let list: IdList = ids.iter().map(|id| id.as_uuid()).collect();
    let found = sqlx::query(sql!(
        "SELECT rollout_id, state, count(*) AS members FROM rollout_members WHERE rollout_id ",
        (one_of "$1"),
        " GROUP BY rollout_id, state ORDER BY rollout_id, state"
    ))
    .bind(list)
    .fetch_all(connection)
    .await?;
    let count = |row: &Row| {
        let members: i64 = rows::get(row, "members")?;
        let state = rows::member(row, "state", MemberState::parse)?;
        Ok((state, u64::try_from(members).unwrap_or_default()))
    };
    let mut progress: BTreeMap<RolloutId, Progress> = BTreeMap::new();
    for row in &found {
        let id = RolloutId::new(row.try_get("rollout_id")?);
        progress.entry(id).or_default().0.push(hydrate(row, "rollout_id", count)?);
    }
    Ok(progress)
}

pub(crate) async fn members(
    connection: &mut Connection,
    (id, state, page): (RolloutId, Option<MemberState>, Page<i32>),
) -> Result<Vec<Member>, Failure> {
    let found = sqlx::query(select_members!(
        "position > $2 AND ($3 IS NULL OR state = $3) ORDER BY position LIMIT $4"
    ))
    .bind(id.as_uuid())
    .bind(page.after.unwrap_or(-1))
    .bind(state.map(MemberState::as_str))
    .bind(i64::from(page.limit))
    .fetch_all(connection)
    .await?;
    read_members(&found)
}

fn read_members(found: &[Row]) -> Result<Vec<Member>, Failure> {
    found.iter().map(|row| hydrate(row, "subject_id", member)).collect()
}

pub(crate) async fn moving(
    connection: &mut Connection,
    limit: u32,
) -> Result<Vec<RolloutId>, Failure> {
    let found = sqlx::query(
        "SELECT id FROM rollouts WHERE ended_at IS NULL AND state IN ('running', 'rolling_back') \
         ORDER BY id LIMIT $1",
    )
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    let ids = found.iter().map(|row| Ok(RolloutId::new(row.try_get("id")?)));
    Ok(ids.collect::<Result<_, sqlx::Error>>()?)
}

/// The members in work, and as many of the next as may be in work at once.
pub(crate) async fn in_work(
    connection: &mut Connection,
    id: RolloutId,
) -> Result<Option<InWork>, Failure> {
    let Some(rollout) = fetch(connection, id).await? else { return Ok(None) };
    let back = rollout.state == RolloutState::RollingBack;
    let (active, failed) = match back {
        true => (MemberState::Reverting, MemberState::RevertFailed),
        false => (MemberState::Changing, MemberState::Failed),
    };
    let of_state = select_members!("state = $2 ORDER BY position");
    let active = sqlx::query(of_state).bind(id.as_uuid()).bind(active.as_str());
    let active = read_members(&active.fetch_all(&mut *connection).await?)?;
    let queue = match back {
        true => select_members!(
            "state IN ('changing', 'healthy', 'failed', 'skipped') AND changed_at IS NOT NULL \
             ORDER BY position DESC LIMIT $2"
        ),
        false => select_members!("state = 'waiting' ORDER BY position LIMIT $2"),
    };
    let limit = i64::from(rollout.strategy.parallel);
    let queue = sqlx::query(queue).bind(id.as_uuid()).bind(limit);
    let queue = read_members(&queue.fetch_all(&mut *connection).await?)?;
    let count =
        "SELECT count(*) AS members FROM rollout_members WHERE rollout_id = $1 AND state = $2";
    let count = sqlx::query(count).bind(id.as_uuid()).bind(failed.as_str());
    let count: i64 = count.fetch_one(&mut *connection).await?.try_get("members")?;
    let first = select_members!("state = $2 ORDER BY position LIMIT 1");
    let first = sqlx::query(first).bind(id.as_uuid()).bind(failed.as_str());
    let first_failed = fetch_one(connection, first, "subject_id", member).await?;
    let failed = u64::try_from(count).unwrap_or_default();
    Ok(Some(InWork { rollout, active, queue, failed, first_failed }))
}

/// A roll-out of this subject that begins. The subject is locked: that of one project and
/// that of all of them do not begin at once.
pub(crate) struct Starting(pub(crate) Subject);

impl Load for Starting {
    type Snapshot = StartSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<StartSnapshot, Failure> {
        let Subject { kind, id } = self.0;
        let subject = match marks::of(kind) {
            Some(marks) => marks.lock(connection, id).await?,
            None => None,
        };
        if subject.is_none_or(|row| row.is_deleted) {
            return Err(Failure::NotFound { kind: kind.as_str() });
        }
        let found = sqlx::query(
            "SELECT id, project_id FROM rollouts WHERE subject_id = $1 AND ended_at IS NULL",
        )
        .bind(id)
        .fetch_all(&mut *connection)
        .await?;
        let one = |row: &Row| {
            let project: Option<Uuid> = row.try_get("project_id")?;
            Ok((RolloutId::new(row.try_get("id")?), project.map(ProjectId::new)))
        };
        let under_way = found.iter().map(one).collect::<Result<_, sqlx::Error>>()?;
        Ok(StartSnapshot { now: now(connection).await?, under_way })
    }
}

/// Roll-outs of the live stacks in a container `$1` that have not ended.
macro_rules! of_stacks {
    ($container:literal) => {
        concat!(
            select_rollouts!(),
            "WHERE ended_at IS NULL AND id IN (SELECT s.rollout_id FROM stacks s WHERE s.",
            $container,
            " = $1 AND s.deleted_at IS NULL) ORDER BY id"
        )
    };
}
pub(crate) const OF_PROJECT: &str = of_stacks!("project_id");
pub(crate) const OF_GENERATOR: &str = of_stacks!("generator_id");

/// Those of one subject `$1`.
pub(crate) const OF_SUBJECT: &str =
    concat!(select_rollouts!(), "WHERE subject_id = $1 AND ended_at IS NULL ORDER BY id");

/// Roll-outs that have not ended, by one of the statements above.
pub(crate) async fn under_way(
    connection: &mut Connection,
    statement: &'static str,
    of: Uuid,
) -> Result<Vec<Rollout>, Failure> {
    let found = sqlx::query(statement).bind(of).fetch_all(connection).await?;
    found.iter().map(|row| hydrate(row, "id", rollout)).collect()
}

/// A roll-out. The stack or the workspace that it is of is locked before it, as by whoever
/// submits an object or declares the workspace.
pub(crate) struct ById(pub(crate) RolloutId);

impl Load for ById {
    type Snapshot = RolloutSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<RolloutSnapshot, Failure> {
        let subject = fetch(connection, self.0).await?.map(|rollout| rollout.subject);
        let stack = match subject {
            Some(Subject { kind: SubjectKind::Stack, id }) => {
                Box::pin(table::lock::<Stack>(connection, &id.to_string())).await?
            }
            Some(Subject { kind: SubjectKind::Workspace, id }) => {
                workspace::lock(connection, WorkspaceId::new(id)).await?;
                None
            }
            _ => None,
        };
        sqlx::query(sql!("SELECT id FROM rollouts WHERE id = $1", for_update))
            .bind(self.0.as_uuid())
            .fetch_optional(&mut *connection)
            .await?;
        let found = fetch(connection, self.0).await?;
        let rollout = found.ok_or(Failure::NotFound { kind: RolloutId::KIND })?;
        Ok(RolloutSnapshot { now: now(connection).await?, rollout, stack })
    }
}
