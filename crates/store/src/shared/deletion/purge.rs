//! Purges: what is due, what a purge would remove and what withholds it, and its batches.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_app::deletion::port::{PurgeBatch, PurgeCounts};
use slipway_core::Timestamp;
use slipway_core::deletion::purge::{Found, Needs, PurgeSnapshot};
use slipway_core::deletion::record::{Deletion, DeletionState};
use slipway_core::ids::{DeletionId, ProjectId};
use slipway_core::operations::control::Mode;
use slipway_core::subject::{Subject, SubjectKind};
use slipway_durable::claim::micros;
use slipway_durable::database::End;
use sqlx::Row as _;
use uuid::Uuid;

use super::page::{count, fetch_one, now, or_left_out};
use super::placement::namespace;
use super::reads::{self, select_deletions};
use super::transaction::Load;
use super::{
    Connection, access, blockers, broker, catalog, events, files, fleet, history, hydrate, leaks,
    marks, nodes, operations, placement, settings, tenants, topology,
};
use crate::failure::Failure;
use crate::id_list::IdList;
use crate::micros::Micros;

/// Not checked for `$1`, or for as long as it was due then.
macro_rules! unchecked {
    () => {
        concat!(
            "(purge_checked_at IS NULL OR purge_checked_at <= ",
            sql!(now, (minus_micros "$1")),
            " OR purge_checked_at > ",
            sql!(now),
            " OR ",
            sql!(now),
            " - purge_checked_at >= purge_checked_at - restorable_until)"
        )
    };
}

/// The clock is read once: compared with a function that changes, PostgreSQL would not use
/// the index.
pub(crate) const DUE: &str = concat!(
    select_deletions!(),
    "WHERE id IN (SELECT id FROM deletions WHERE state = 'purging' AND (erases = 0 OR ",
    unchecked!(),
    ") UNION ALL SELECT id FROM deletions WHERE state = 'done' AND restorable_until <= (SELECT ",
    sql!(now),
    ") AND ",
    unchecked!(),
    ") ORDER BY id LIMIT $2"
);

/// Purging ones, and done ones past their retention, or that erase and wait, that were not checked for `recheck`, or
/// for as long as they were due then: what is withheld is looked at less and less often.
pub(crate) async fn due(
    connection: &mut Connection,
    (recheck, limit): (Duration, u32),
) -> Result<Vec<Deletion>, Failure> {
    let found =
        sqlx::query(DUE).bind(micros(recheck)).bind(i64::from(limit)).fetch_all(connection).await?;
    Ok(found
        .iter()
        .filter_map(|row| {
            let id = row.try_get::<Uuid, _>("d_id").unwrap_or_default();
            or_left_out(DeletionId::KIND, id, hydrate::deletion(row))
        })
        .collect())
}

/// Something withholds its purge now.
pub(crate) async fn checked(connection: &mut Connection, id: DeletionId) -> Result<(), Failure> {
    sqlx::query(sql!("UPDATE deletions SET purge_checked_at = ", now, " WHERE id = $1"))
        .bind(id.as_uuid())
        .execute(connection)
        .await?;
    Ok(())
}

/// A deletion by its id, with everything that may withhold its purge. Its target is locked
/// before its record is read, as by a restore.
pub(crate) struct Purgeable(pub(crate) DeletionId);

impl Load for Purgeable {
    type Snapshot = PurgeSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<PurgeSnapshot, Failure> {
        let missing = Failure::NotFound { kind: DeletionId::KIND };
        let Some(found) = reads::fetch(connection, self.0).await? else { return Err(missing) };
        if let Some(marks) = marks::of(found.target.kind) {
            marks.lock(connection, found.target.id).await?;
        }
        let Some(deletion) = reads::fetch(connection, self.0).await? else { return Err(missing) };
        let parent = match deletion.parent {
            Some(parent) => reads::fetch(connection, parent).await?,
            None => None,
        };
        let needs = match deletion.state {
            DeletionState::Done => needs(connection, &deletion).await?,
            _ => Needs::default(),
        };
        let left = left(connection, &deletion).await?;
        let control = operations::control::fetch(connection, ()).await?;
        Ok(PurgeSnapshot {
            now: now(connection).await?,
            mode: control.mode(),
            mode_revision: control.revision,
            deletion,
            parent,
            needs,
            left,
        })
    }
}

/// Locks the record alone: one that is purging is written by nobody else, and who removes
/// members must not have locked the project that they are in.
async fn locked(connection: &mut Connection, id: DeletionId) -> Result<Deletion, Failure> {
    let query = sqlx::query(concat!(select_deletions!(), "WHERE id = $1", sql!(for_update)));
    let locked = fetch_one(connection, query.bind(id.as_uuid()), "d_id", hydrate::deletion).await?;
    locked.ok_or(Failure::NotFound { kind: DeletionId::KIND })
}

/// The rows that carry its id, and the attempt that a retry took down.
async fn left(connection: &mut Connection, deletion: &Deletion) -> Result<u64, Failure> {
    let members = marks::members_of(connection, (deletion.id, 0)).await?.count;
    let attempt = match deletion.target.kind {
        SubjectKind::ProvisionedResource => {
            let statement = "SELECT count(*) AS found FROM provisioned_resources WHERE id = $1";
            count(connection, statement, deletion.target.id).await?
        }
        _ => 0,
    };
    Ok(members + u64::try_from(attempt).unwrap_or_default())
}

/// The resource `r` is a deleted member of `$1`.
macro_rules! member {
    () => {
        "r.deletion_id = $1 AND r.deleted_at IS NOT NULL"
    };
}

/// The attempts of its member resources, and the one that a retry took down. `$1` is the
/// deletion, `$2` its target; ids are unique over all kinds.
macro_rules! member_attempts {
    ($columns:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM resources r JOIN provisioned_resources a ON a.resource_id = r.id WHERE ",
            member!(),
            " AND (",
            $condition,
            ") UNION SELECT ",
            $columns,
            " FROM provisioned_resources a JOIN resources r ON r.id = a.resource_id \
             WHERE a.id = $2 AND (",
            $condition,
            ")"
        )
    };
}

/// A statement that selects `name`, with how many rows it finds.
macro_rules! found {
    ($select:expr) => {
        concat!(
            "SELECT name, count(*) OVER () AS found FROM (",
            $select,
            ") AS t WHERE $1 = $1 AND $2 = $2 ORDER BY name LIMIT $3"
        )
    };
}

const UNPROVEN: &str = found!(member_attempts!(
    "a.id, r.handle AS name",
    "a.status <> 'Deleted' OR (a.absence_proven_at IS NULL AND a.abandoned_at IS NULL) \
     OR EXISTS (SELECT 1 FROM nodes n WHERE n.provisioned_resource_id = a.id \
        AND n.deregistered_at IS NULL)"
));

/// What a failed job of a tenant left behind goes with the tenant.
const LEAKS: &str = found!(concat!(
    "SELECT l.id, coalesce(l.object_name, l.kind) AS name FROM leak_records l \
     WHERE l.resolved_at IS NULL AND l.kind <> 'tenant_leftovers' AND (l.subject_id = $2 OR EXISTS (\
        SELECT 1 FROM provisioned_resources a JOIN resources r ON r.id = a.resource_id \
        WHERE a.id = l.subject_id AND ",
    member!(),
    ") OR EXISTS (SELECT 1 FROM fleet_agents f WHERE f.id = l.subject_id \
        AND f.deletion_id = $1 AND f.deleted_at IS NOT NULL))"
));

/// What refers to the target, or to the attempt that a retry took down, and does not go
/// with it.
const fn users(kind: SubjectKind) -> Option<&'static str> {
    match kind {
        SubjectKind::Project => Some(found!(
            "SELECT r.id, 'resource ' || r.handle AS name FROM resources r \
             WHERE r.project_id = $2 AND (r.deletion_id IS NULL OR r.deletion_id <> $1 \
                OR r.deleted_at IS NULL) \
             UNION ALL SELECT g.id, 'generator ' || g.name AS name FROM generators g \
             WHERE g.project_id = $2 AND (g.deletion_id IS NULL OR g.deletion_id <> $1 \
                OR g.deleted_at IS NULL) \
             UNION ALL SELECT s.id, 'stack ' || s.name AS name FROM stacks s \
             WHERE s.project_id = $2 AND (s.deletion_id IS NULL OR s.deletion_id <> $1 \
                OR s.deleted_at IS NULL) \
             UNION ALL SELECT t.id, 'template ' || t.name AS name FROM fleet_templates t \
             WHERE t.project_id = $2 AND (t.deletion_id IS NULL OR t.deletion_id <> $1 \
                OR t.deleted_at IS NULL) \
             UNION ALL SELECT a.id, 'agent ' || a.name AS name FROM fleet_agents a \
             WHERE a.project_id = $2 AND (a.deletion_id IS NULL OR a.deletion_id <> $1 \
                OR a.deleted_at IS NULL) \
             UNION ALL SELECT t.id, 'tenant ' || t.name AS name FROM tenants t \
             WHERE t.project_id = $2 \
             UNION ALL SELECT w.id, 'workspace ' || w.name AS name FROM workspaces w \
             WHERE w.project_id = $2"
        )),
        SubjectKind::Workspace => Some(found!(
            "SELECT r.id, 'server ' || r.handle AS name FROM resources r WHERE r.workspace_id = $2"
        )),
        SubjectKind::TenantProfile => Some(found!(
            "SELECT t.id, 'tenant ' || t.name AS name FROM tenants t WHERE t.profile_id = $2"
        )),
        // What is being purged goes before its generator.
        SubjectKind::Generator => Some(found!(
            "SELECT s.id, 'stack ' || s.name AS name FROM stacks s WHERE s.generator_id = $2 \
             AND (s.deletion_id IS NULL OR s.deletion_id <> $1 OR s.deleted_at IS NULL) \
             AND NOT EXISTS (SELECT 1 FROM deletions d \
                WHERE d.id = s.deletion_id AND d.state = 'purging') \
             UNION ALL SELECT t.id, 'template ' || t.name AS name FROM fleet_templates t \
             WHERE t.generator_id = $2 \
             AND (t.deletion_id IS NULL OR t.deletion_id <> $1 OR t.deleted_at IS NULL) \
             AND NOT EXISTS (SELECT 1 FROM deletions d \
                WHERE d.id = t.deletion_id AND d.state = 'purging')"
        )),
        SubjectKind::Cloud => Some(found!(
            "SELECT c.id, 'credential ' || c.name AS name FROM cloud_credentials c \
             WHERE c.cloud_id = $2"
        )),
        SubjectKind::Credential => Some(found!(
            "SELECT p.id, 'project ' || p.name AS name FROM credential_assignments g \
             JOIN projects p ON p.id = g.project_id WHERE g.cloud_credential_id = $2 \
             UNION ALL SELECT r.id, 'resource ' || r.handle AS name FROM resources r \
             WHERE EXISTS (SELECT 1 FROM provisioned_resources a \
                WHERE a.resource_id = r.id AND a.cloud_credential_id = $2)"
        )),
        SubjectKind::Cluster => Some(found!(
            "SELECT p.id, 'project ' || p.name AS name FROM cluster_assignments s \
             JOIN projects p ON p.id = s.project_id WHERE s.cluster_id = $2"
        )),
        SubjectKind::Blueprint => Some(found!(
            "SELECT r.id, 'resource ' || r.handle AS name FROM resources r \
             WHERE EXISTS (SELECT 1 FROM provisioned_resources a JOIN blueprint_versions v \
                ON v.id = a.blueprint_version_id OR v.id = a.next_blueprint_version_id \
                WHERE a.resource_id = r.id AND v.blueprint_id = $2)"
        )),
        // The attempt that a resource has now stays with it.
        SubjectKind::ProvisionedResource => Some(found!(
            "SELECT r.id, 'resource ' || r.handle AS name FROM provisioned_resources a \
             JOIN resources r ON r.id = a.resource_id WHERE a.id = $2 \
             AND (r.deletion_id IS NULL OR r.deletion_id <> $1 OR r.deleted_at IS NULL) \
             AND a.in_use <> 0 AND NOT EXISTS (SELECT 1 FROM provisioned_resources n \
                WHERE n.resource_id = a.resource_id AND n.attempt > a.attempt \
                AND n.in_use <> 0)"
        )),
        _ => None,
    }
}

/// Stacks that an agent may still have: it has not reported that it removed them.
const OWED: &str = found!(
    "SELECT s.id, 'stack ' || s.name || ' on agent ' || a.name AS name FROM holdings h \
     JOIN stacks s ON s.id = h.stack_id JOIN fleet_agents a ON a.id = h.agent_id \
     WHERE h.released_at IS NULL AND a.deleted_at IS NULL AND s.deletion_id = $1 \
     AND s.deleted_at IS NOT NULL"
);

async fn needs(connection: &mut Connection, deletion: &Deletion) -> Result<Needs, Failure> {
    let mut unproven = found(connection, UNPROVEN, deletion).await?;
    let target = deletion.target;
    if target.kind == SubjectKind::Project
        && namespace::is_left(connection, ProjectId::new(target.id)).await?
    {
        unproven.count += 1;
        unproven.names.push("the namespace of the project".to_owned());
    }
    Ok(Needs {
        unproven,
        owed: found(connection, OWED, deletion).await?,
        leaks: found(connection, LEAKS, deletion).await?,
        owed_delivery: events::owed::to_deletion(connection, deletion.id, target.id).await?,
        users: match users(target.kind) {
            Some(statement) => found(connection, statement, deletion).await?,
            None => Found::default(),
        },
    })
}

async fn found(
    connection: &mut Connection,
    statement: &'static str,
    deletion: &Deletion,
) -> Result<Found, Failure> {
    let found = sqlx::query(statement)
        .bind(deletion.id.as_uuid())
        .bind(deletion.target.id)
        .bind(Found::NAMED)
        .fetch_all(connection)
        .await?;
    Ok(Found {
        count: found.first().map_or(Ok(0), |row| row.try_get("found"))?,
        names: found.iter().map(|row| row.try_get("name")).collect::<Result<_, _>>()?,
    })
}

/// Counts the rows of a table that hang on its attempts.
macro_rules! of_attempts {
    ($table:literal, $column:literal) => {
        (
            $table,
            concat!(
                "SELECT count(*) AS found FROM ",
                $table,
                " WHERE ",
                $column,
                " IN (",
                member_attempts!("a.id", "1 = 1"),
                ")"
            ),
        )
    };
}

/// Counts the rows of a table that are its target, or part of it.
macro_rules! of_target {
    ($table:literal, $column:literal) => {
        (
            $table,
            concat!(
                "SELECT count(*) AS found FROM ",
                $table,
                " WHERE $1 = $1 AND ",
                $column,
                " = $2"
            ),
        )
    };
}

/// Counts the rows of a table that are its stacks, or hang on them.
macro_rules! of_stacks {
    ($table:literal, $column:literal) => {
        (
            $table,
            concat!(
                "SELECT count(*) AS found FROM ",
                $table,
                " WHERE $2 = $2 AND ",
                $column,
                " IN (SELECT id FROM stacks WHERE deletion_id = $1 AND deleted_at IS NOT NULL)"
            ),
        )
    };
}

/// Counts the rows of a table that carry its id.
macro_rules! of_deletion {
    ($table:literal) => {
        (
            $table,
            concat!(
                "SELECT count(*) AS found FROM ",
                $table,
                " WHERE $2 = $2 AND deletion_id = $1 AND deleted_at IS NOT NULL"
            ),
        )
    };
}

/// The tables from which a purge removes rows, with a count of those.
const TABLES: [(&str, &str); 26] = [
    of_attempts!("nodes", "provisioned_resource_id"),
    of_attempts!("bootstrap_tokens", "provisioned_resource_id"),
    of_attempts!("manual_machines", "provisioned_resource_id"),
    of_attempts!("state_changes", "subject_id"),
    of_attempts!("provisioned_resources", "id"),
    (
        "resources",
        concat!("SELECT count(*) AS found FROM resources r WHERE $2 = $2 AND ", member!()),
    ),
    of_target!("mesh_addresses", "project_id"),
    of_target!("credential_assignments", "project_id"),
    of_target!("cluster_assignments", "project_id"),
    of_target!("deletion_settings", "project_id"),
    of_target!("projects", "id"),
    of_target!("clouds", "id"),
    of_target!("cloud_credentials", "id"),
    of_target!("blueprint_versions", "blueprint_id"),
    of_target!("blueprints", "id"),
    of_target!("clusters", "id"),
    of_target!("label_definitions", "id"),
    of_stacks!("deployment_objects", "stack_id"),
    of_stacks!("stacks", "id"),
    of_deletion!("fleet_templates"),
    of_deletion!("generators"),
    of_deletion!("fleet_agents"),
    of_target!("tenant_profiles", "id"),
    of_target!("tenants", "id"),
    of_target!("workspace_groups", "workspace_id"),
    of_target!("workspaces", "id"),
];

/// How many rows a purge of this deletion would remove, by table.
pub(crate) async fn counts(
    connection: &mut Connection,
    id: DeletionId,
) -> Result<PurgeCounts, Failure> {
    let mut counts = PurgeCounts::new();
    let Some(deletion) = reads::fetch(connection, id).await? else { return Ok(counts) };
    for (table, statement) in TABLES {
        let query = sqlx::query(statement).bind(id.as_uuid()).bind(deletion.target.id);
        let found: i64 = query.fetch_one(&mut *connection).await?.try_get("found")?;
        if found > 0 {
            counts.push((table, u64::try_from(found).unwrap_or_default()));
        }
    }
    Ok(counts)
}

/// One batch of a purging deletion, in the order of references: its attempts with what
/// hangs on them, its resources, what its target has, its target. Another batch at the
/// same time waits for the lock of the record.
pub(crate) async fn batch(
    connection: &mut Connection,
    (id, limit): (DeletionId, u32),
) -> Result<End<PurgeBatch>, Failure> {
    let deletion = locked(connection, id).await?;
    let control = operations::control::fetch(connection, ()).await?;
    let acting = control.mode() == Mode::Acting;
    if deletion.state != DeletionState::Purging || !acting {
        let step = PurgeBatch { removed: 0, is_left: false, withheld: !acting, waits: false };
        return Ok(End::Rollback(step));
    }
    let waits = PurgeBatch { removed: 0, is_left: true, withheld: false, waits: true };
    if deletion.fleet.erases {
        let erased = fleet::purge::erase(connection, deletion.id, limit).await?;
        if erased > 0 {
            let mode = std::iter::once(control.revision);
            operations::control::require_mode(connection, mode).await?;
            return Ok(End::Commit(PurgeBatch { removed: erased, waits: false, ..waits }));
        }
        // It began although something needed the rows.
        if !Box::pin(needs(connection, &deletion)).await?.is_empty() {
            return Ok(End::Rollback(waits));
        }
    }
    let Subject { kind, id } = deletion.target;
    // Members before anything of the target is locked: the lock of a project comes first.
    let has_members = broker::purge::has_members(connection, deletion.id).await?;
    let (removed, is_left) = match marks::of(kind).filter(|_| !has_members) {
        Some(marks) => {
            marks.lock(connection, id).await?;
            if fleet::purge::is_needed(connection, deletion.id).await? {
                return Ok(End::Rollback(waits));
            }
            if kind == SubjectKind::Tenant && tenants::purge::waits(connection, id).await? {
                return Ok(End::Commit(waits));
            }
            let (mut leaves, mut is_left) =
                Box::pin(fleet::purge::batch(connection, &deletion, limit)).await?;
            if kind == SubjectKind::Project && !is_left {
                let rows = nodes::purge::of_project(connection, (id, limit)).await?;
                leaves += rows;
                is_left = rows >= u64::from(limit);
            }
            let rows = if is_left { 0 } else { row(connection, kind, id).await? };
            (leaves + rows, is_left)
        }
        None => {
            let (resources, attempts) = broker::purge::next(connection, &deletion, limit).await?;
            let removed = broker::purge::attempts(connection, &attempts).await?;
            (removed + broker::purge::resources(connection, &resources).await?, has_members)
        }
    };
    operations::control::require_mode(connection, std::iter::once(control.revision)).await?;
    Ok(End::Commit(PurgeBatch { removed, is_left, withheld: false, waits: false }))
}

/// Overwrites content of a purging deletion, unless the mode withholds it.
pub(crate) async fn erase(
    connection: &mut Connection,
    (id, limit): (DeletionId, u32),
) -> Result<End<u64>, Failure> {
    let deletion = locked(connection, id).await?;
    let control = operations::control::fetch(connection, ()).await?;
    let acting = control.mode() == Mode::Acting;
    if deletion.state != DeletionState::Purging || !deletion.fleet.erases || !acting {
        return Ok(End::Rollback(0));
    }
    let erased = fleet::purge::erase(connection, id, limit).await?;
    operations::control::require_mode(connection, std::iter::once(control.revision)).await?;
    Ok(if erased > 0 { End::Commit(erased) } else { End::Rollback(0) })
}

/// Done deletions of stacks and templates of the generator that this one deleted.
pub(crate) async fn before(
    connection: &mut Connection,
    id: DeletionId,
) -> Result<Vec<DeletionId>, Failure> {
    let found = sqlx::query(
        "SELECT d.id FROM deletions d WHERE d.state = 'done' AND d.id <> $1 AND d.id IN (\
            SELECT s.deletion_id FROM stacks s JOIN generators g ON g.id = s.generator_id \
            WHERE g.deletion_id = $1 UNION ALL \
            SELECT t.deletion_id FROM fleet_templates t JOIN generators g \
            ON g.id = t.generator_id WHERE g.deletion_id = $1) ORDER BY d.id",
    )
    .bind(id.as_uuid())
    .fetch_all(connection)
    .await?;
    let ids = found.iter().map(|row| Ok(DeletionId::new(row.try_get("id")?)));
    Ok(ids.collect::<Result<_, sqlx::Error>>()?)
}

/// The row of the target, with what is part of it.
async fn row(connection: &mut Connection, kind: SubjectKind, id: Uuid) -> Result<u64, Failure> {
    let mut removed = placement::purge::row(connection, kind, id).await?;
    match kind {
        SubjectKind::Project => removed += settings::remove_of(connection, id).await?,
        SubjectKind::Cluster => removed += leaks::forget_suspicions(connection, id).await?,
        _ => {}
    }
    removed += forget(connection, kind, &IdList(vec![id])).await?;
    removed += catalog::purge::row(connection, kind, id).await?;
    removed += tenants::purge::row(connection, kind, id).await?;
    removed += topology::purge::row(connection, kind, id).await?;
    Ok(removed)
}

/// Removes what is kept about subjects of any kind: blockers, protections, the lines of
/// their histories. Audit entries stay for as long as the audit is kept.
pub(crate) async fn forget(
    connection: &mut Connection,
    kind: SubjectKind,
    subjects: &IdList,
) -> Result<u64, Failure> {
    let none: Vec<_> = subjects.0.iter().map(|id| (Subject::new(kind, *id), &[][..])).collect();
    blockers::replace(connection, &none).await?;
    sqlx::query(sql!(
        "DELETE FROM protections WHERE subject_kind = $1 AND subject_id ",
        (one_of "$2")
    ))
    .bind(kind.as_str())
    .bind(subjects.clone())
    .execute(&mut *connection)
    .await?;
    files::declared::forget_subjects(connection, subjects).await?;
    let lines = history::forget(connection, subjects).await?;
    access::audit::end_histories(connection, subjects.clone()).await?;
    Ok(lines)
}

/// Removes records of deletions that ended, and leaks that were resolved, longer than
/// `keep` ago, `limit` of each at most.
pub(crate) async fn prune(
    connection: &mut Connection,
    (keep, limit): (Duration, u32),
) -> Result<End<u64>, Failure> {
    let ended = sqlx::query(sql!(
        "SELECT id FROM deletions WHERE ended_at IS NOT NULL AND ended_at <= ",
        now,
        (minus_micros "$1"),
        " ORDER BY ended_at LIMIT $2"
    ))
    .bind(micros(keep))
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    let ended: Vec<Uuid> =
        ended.iter().map(|row| row.try_get("id")).collect::<Result<_, sqlx::Error>>()?;
    let ended = IdList(ended);
    forget(connection, SubjectKind::Deletion, &ended).await?;
    let mut removed = sqlx::query(sql!("DELETE FROM deletions WHERE id ", (one_of "$1")))
        .bind(ended)
        .execute(&mut *connection)
        .await?
        .rows_affected();
    removed += sqlx::query(sql!(
        "DELETE FROM leak_records WHERE id IN (SELECT id FROM leak_records \
         WHERE resolved_at IS NOT NULL AND resolved_at <= ",
        now,
        (minus_micros "$1"),
        " ORDER BY id LIMIT $2)"
    ))
    .bind(micros(keep))
    .bind(i64::from(limit))
    .execute(&mut *connection)
    .await?
    .rows_affected();
    Ok(if removed > 0 { End::Commit(removed) } else { End::Rollback(0) })
}

/// Counts live and deleted rows of a table. Resources have an index for each.
macro_rules! rows_of {
    ($kind:ident, $table:literal) => {
        (
            SubjectKind::$kind,
            concat!(
                "SELECT (SELECT count(*) FROM ",
                $table,
                " WHERE deleted_at IS NULL) AS live, (SELECT count(*) FROM ",
                $table,
                " WHERE deleted_at IS NOT NULL) AS deleted"
            ),
        )
    };
}

pub(crate) async fn rows(
    connection: &mut Connection,
) -> Result<BTreeMap<SubjectKind, (u64, u64)>, Failure> {
    const STATEMENTS: [(SubjectKind, &str); 14] = [
        rows_of!(Project, "projects"),
        rows_of!(Cloud, "clouds"),
        rows_of!(Credential, "cloud_credentials"),
        rows_of!(Cluster, "clusters"),
        rows_of!(Blueprint, "blueprints"),
        rows_of!(Label, "label_definitions"),
        rows_of!(Resource, "resources"),
        rows_of!(Generator, "generators"),
        rows_of!(Stack, "stacks"),
        rows_of!(Template, "fleet_templates"),
        rows_of!(Agent, "fleet_agents"),
        rows_of!(TenantProfile, "tenant_profiles"),
        rows_of!(Tenant, "tenants"),
        rows_of!(Workspace, "workspaces"),
    ];
    let mut found = BTreeMap::new();
    for (kind, statement) in STATEMENTS {
        let row = sqlx::query(statement).fetch_one(&mut *connection).await?;
        let number = |column| row.try_get::<i64, _>(column).map(|n| u64::try_from(n).unwrap_or(0));
        found.insert(kind, (number("live")?, number("deleted")?));
    }
    Ok(found)
}

/// How long the purge that is due for longest has been due.
pub(crate) async fn overdue(connection: &mut Connection) -> Result<Duration, Failure> {
    let row = sqlx::query(sql!(
        "SELECT restorable_until, ",
        now,
        " AS now FROM deletions WHERE state = 'done' ORDER BY restorable_until LIMIT 1"
    ))
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(Duration::ZERO) };
    let time = |column| row.try_get::<Option<Micros>, _>(column).map(|at| at.map(Timestamp::from));
    Ok(match (time("restorable_until")?, time("now")?) {
        (Some(until), Some(now)) => now.since(until),
        _ => Duration::ZERO,
    })
}
