//! The table of plans, and what a plan reads. Few statements over whole sets, however much
//! would go.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use slipway_core::Timestamp;
use slipway_core::access::holder::Holder;
use slipway_core::deletion::approval::{Approval, Approved, People, PlanSnapshot};
use slipway_core::deletion::door::Reads;
use slipway_core::deletion::plan::{
    Member, Members, Namespace, PastTeardowns, Plan, Reading, ResourceRow, UNUSED_MAX, Use,
    VersionRow,
};
use slipway_core::deletion::protection::Protection;
use slipway_core::ids::{DeletionId, PlanId, ProjectId, Revision};
use slipway_core::subject::{Subject, SubjectKind};
use slipway_durable::database::End;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::access::api_keys;
use super::page::{fetch_one, now};
use super::transaction::Load;
use super::{Connection, JOIN_SETS, Row, marks, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;
use crate::micros::Micros;

/// Earlier deletions among which past teardowns are searched.
const SEARCHED: i64 = 1_000;

/// What the deletion of a subject would take away, the row of which is locked.
pub(crate) async fn reading(
    connection: &mut Connection,
    subject: Subject,
    reads: Reads,
    protections: &[Protection],
) -> Result<Option<Reading>, Failure> {
    let (cascade, everything) = match reads {
        Reads::Nothing => return Ok(None),
        Reads::Members { cascade } => (cascade, false),
        Reads::Everything { cascade } => (cascade, true),
    };
    let target = match marks::of(subject.kind) {
        Some(marks) => marks.find(connection, subject.id).await?,
        None => None,
    };
    let Some(target) = target else { return Ok(None) };
    let mut reading = Reading::default();
    if subject.kind != SubjectKind::Resource {
        reading.members.push(Member {
            subject,
            name: target.name,
            attempt: None,
            nodes: Vec::new(),
            protected: None,
        });
    }
    match subject.kind {
        SubjectKind::Resource => resources(connection, ONE, subject.id, &mut reading).await?,
        SubjectKind::Project if cascade => {
            if let Some(statement) = JOIN_SETS {
                sqlx::query(statement).execute(&mut *connection).await?;
            }
            resources(connection, OF_PROJECT, subject.id, &mut reading).await?;
            contained(connection, &IN_PROJECT, subject.id, &mut reading).await?;
        }
        SubjectKind::Blueprint => versions_of(connection, subject.id, &mut reading).await?,
        SubjectKind::Generator => {
            contained(connection, &IN_GENERATOR, subject.id, &mut reading).await?;
        }
        _ => {}
    }
    let mut protected: HashMap<Subject, &Protection> =
        protections.iter().map(|protection| (protection.subject, protection)).collect();
    if !protected.is_empty() {
        for member in &mut reading.members {
            member.protected = protected.remove(&member.subject).map(|one| one.reason.clone());
        }
    }
    if everything {
        let goes = subject.kind == SubjectKind::Project;
        if let Some(project) = target.project_id {
            reading.namespace = namespace(connection, project, goes).await?;
        }
        about_versions(connection, &mut reading).await?;
    }
    Ok(Some(reading))
}

/// Every attempt of the resources, the current one of each last: cheaper than a search for
/// the current one of each.
macro_rules! resources_sql {
    ($condition:literal) => {
        concat!(
            "SELECT r.id, r.handle, a.attempt, a.xr_name, a.blueprint_version_id, \
             n.id AS node_id, n.hostname, a.in_use, \
             CASE WHEN a.id = r.surge_from OR a.id = r.surge_to THEN 1 ELSE 0 END AS is_paired \
             FROM resources r \
             LEFT JOIN provisioned_resources a ON a.resource_id = r.id \
             LEFT JOIN nodes n ON n.provisioned_resource_id = a.id AND n.deregistered_at IS NULL \
             WHERE ",
            $condition,
            " AND r.deleted_at IS NULL ORDER BY r.id, a.attempt"
        )
    };
}

const ONE: &str = resources_sql!("r.id = $1");
const OF_PROJECT: &str = resources_sql!("r.project_id = $1");

async fn resources(
    connection: &mut Connection,
    statement: &'static str,
    id: Uuid,
    reading: &mut Reading,
) -> Result<(), Failure> {
    let found = sqlx::query(statement).bind(id).fetch_all(connection).await?;
    let mut of_one = Vec::new();
    for (index, row) in found.iter().enumerate() {
        of_one.push(row);
        let id: Uuid = row.try_get(0)?;
        match found.get(index + 1) {
            Some(next) if next.try_get::<Uuid, _>(0)? == id => {}
            _ => one(id, &std::mem::take(&mut of_one), reading)?,
        }
    }
    Ok(())
}

/// A resource from the rows of its attempts: the current one, or both if it has two.
fn one(id: Uuid, attempts: &[&Row], reading: &mut Reading) -> Result<(), Failure> {
    let mut going = Vec::new();
    let mut current = None;
    for row in attempts {
        if row.try_get::<i32, _>("is_paired")? == 1 {
            going.push(*row);
        }
        if row.try_get::<Option<i32>, _>("in_use")? != Some(0) {
            current = Some(*row);
        }
    }
    let going = if going.is_empty() { current.into_iter().collect() } else { going };
    let Some(last) = going.last() else { return Ok(()) };
    let mut member = Member {
        subject: Subject { kind: SubjectKind::Resource, id },
        name: last.try_get(1)?,
        attempt: last.try_get(2)?,
        nodes: Vec::new(),
        protected: None,
    };
    for row in going {
        member.nodes.extend(row.try_get::<Option<Uuid>, _>(5)?);
        let version: Option<Uuid> = row.try_get(4)?;
        reading.resources.push(ResourceRow {
            version: version.unwrap_or_default(),
            composite: row.try_get::<Option<String>, _>(3)?.unwrap_or_default(),
            node: row.try_get(6)?,
        });
    }
    reading.members.push(member);
    Ok(())
}

/// They are deleted with their blueprint.
async fn versions_of(
    connection: &mut Connection,
    blueprint: Uuid,
    reading: &mut Reading,
) -> Result<(), Failure> {
    let query = sqlx::query(
        "SELECT v.id, b.slug || ' ' || v.version AS name FROM blueprint_versions v \
         JOIN blueprints b ON b.id = v.blueprint_id WHERE v.blueprint_id = $1 ORDER BY v.id",
    );
    for row in query.bind(blueprint).fetch_all(connection).await? {
        reading.members.push(Member {
            subject: Subject { kind: SubjectKind::BlueprintVersion, id: row.try_get("id")? },
            name: row.try_get("name")?,
            attempt: None,
            nodes: Vec::new(),
            protected: None,
        });
    }
    Ok(())
}

/// The live rows of a table in a container.
macro_rules! live {
    ($table:literal, $container:literal) => {
        concat!(
            "SELECT id, name FROM ",
            $table,
            " WHERE ",
            $container,
            " = $1 AND deleted_at IS NULL ORDER BY id"
        )
    };
}

/// Stacks and templates go with their generator.
const IN_GENERATOR: [(SubjectKind, &str); 2] = [
    (SubjectKind::Stack, live!("stacks", "generator_id")),
    (SubjectKind::Template, live!("fleet_templates", "generator_id")),
];

const IN_PROJECT: [(SubjectKind, &str); 4] = [
    (SubjectKind::Agent, live!("fleet_agents", "project_id")),
    (SubjectKind::Generator, live!("generators", "project_id")),
    (SubjectKind::Stack, live!("stacks", "project_id")),
    (SubjectKind::Template, live!("fleet_templates", "project_id")),
];

async fn contained(
    connection: &mut Connection,
    statements: &[(SubjectKind, &'static str)],
    container: Uuid,
    reading: &mut Reading,
) -> Result<(), Failure> {
    for (kind, statement) in statements {
        for row in sqlx::query(*statement).bind(container).fetch_all(&mut *connection).await? {
            reading.members.push(Member {
                subject: Subject { kind: *kind, id: row.try_get("id")? },
                name: row.try_get("name")?,
                attempt: None,
                nodes: Vec::new(),
                protected: None,
            });
        }
    }
    Ok(())
}

async fn namespace(
    connection: &mut Connection,
    project: ProjectId,
    goes: bool,
) -> Result<Option<Namespace>, Failure> {
    let row = sqlx::query(
        "SELECT s.namespace, s.namespace_phase, c.name, c.engine FROM cluster_assignments s \
         JOIN clusters c ON c.id = s.cluster_id WHERE s.project_id = $1",
    )
    .bind(project.as_uuid())
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    // As the deletion of a project waits for it.
    let is_left = row.try_get::<String, _>("engine")? == "crossplane"
        && row.try_get::<String, _>("namespace_phase")? != "Deleted";
    Ok(Some(Namespace {
        cluster: row.try_get("name")?,
        name: row.try_get("namespace")?,
        goes: goes && is_left,
    }))
}

/// The blueprints of the resources, and how long past teardowns of them took.
async fn about_versions(connection: &mut Connection, reading: &mut Reading) -> Result<(), Failure> {
    let ids: BTreeSet<Uuid> = reading.resources.iter().map(|row| row.version).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let ids: IdList = ids.into_iter().collect();
    let found = sqlx::query(sql!(
        "SELECT v.id, v.kind, b.slug FROM blueprint_versions v \
         JOIN blueprints b ON b.id = v.blueprint_id WHERE v.id ",
        (one_of "$1")
    ))
    .bind(ids.clone())
    .fetch_all(&mut *connection)
    .await?;
    let version = |row: &Row| {
        let version = VersionRow { blueprint: row.try_get("slug")?, kind: row.try_get("kind")? };
        Ok((row.try_get("id")?, version))
    };
    reading.versions =
        found.iter().map(version).collect::<Result<BTreeMap<_, _>, sqlx::Error>>()?;
    let found = sqlx::query(sql!(
        "SELECT d.begun_at, d.done_at FROM (SELECT kind, state, target_id, \
         coalesce(scheduled_for, requested_at) AS begun_at, done_at \
         FROM deletions ORDER BY id DESC LIMIT $2) AS d \
         WHERE d.kind = 'resource' AND d.state = 'done' AND d.done_at IS NOT NULL \
         AND EXISTS (SELECT 1 FROM provisioned_resources a \
            JOIN blueprint_versions v ON v.id = a.blueprint_version_id \
            WHERE a.resource_id = d.target_id AND v.blueprint_id IN \
            (SELECT blueprint_id FROM blueprint_versions WHERE id ",
        (one_of "$1"),
        "))"
    ))
    .bind(ids)
    .bind(SEARCHED)
    .fetch_all(connection)
    .await?;
    let time = |row: &Row, column| row.try_get::<Micros, _>(column).map(Timestamp::from);
    let taken = found.iter().map(|row| Ok(time(row, "done_at")?.since(time(row, "begun_at")?)));
    reading.past = PastTeardowns(taken.collect::<Result<_, sqlx::Error>>()?);
    Ok(())
}

pub(crate) async fn fetch(
    connection: &mut Connection,
    id: PlanId,
) -> Result<Option<Plan>, Failure> {
    let query = sqlx::query(
        "SELECT id, revision, kind, target_id, name, project_id, cascade, planned_by, planned_at, \
         expires_at, used_by, approved_by, approved_reason, approved_at, approved_until, digest, \
         members, shown FROM deletion_plans WHERE id = $1",
    );
    fetch_one(connection, query.bind(id.as_uuid()), "id", plan).await
}

fn plan(row: &Row) -> Result<Plan, Fault> {
    let approval = match rows::time_or_null(row, "approved_until")? {
        Some(until) => Some(Approval {
            by: rows::get(row, "approved_by")?,
            reason: rows::get(row, "approved_reason")?,
            at: rows::time(row, "approved_at")?,
            until,
        }),
        None => None,
    };
    Ok(Plan {
        id: PlanId::new(rows::get(row, "id")?),
        revision: Revision(rows::get(row, "revision")?),
        target: Subject {
            kind: rows::member(row, "kind", SubjectKind::parse)?,
            id: rows::get(row, "target_id")?,
        },
        name: rows::get(row, "name")?,
        project_id: rows::get::<Option<Uuid>>(row, "project_id")?.map(ProjectId::new),
        cascade: rows::get::<i32>(row, "cascade")? != 0,
        planned_by: rows::get(row, "planned_by")?,
        planned_at: rows::time(row, "planned_at")?,
        expires_at: rows::time(row, "expires_at")?,
        used_by: rows::get::<Option<Uuid>>(row, "used_by")?.map(DeletionId::new),
        approval,
        digest: rows::get(row, "digest")?,
        members: Members::from_stored(rows::get(row, "members")?),
        shown: rows::json(row, "shown")?,
    })
}

/// Inserts a plan, and removes the oldest unused ones of the same caller and target if
/// there are too many.
pub(crate) async fn insert(connection: &mut Connection, plan: &Plan) -> Result<(), Failure> {
    sqlx::query(
        "DELETE FROM deletion_plans WHERE target_id = $1 AND planned_by = $2 AND used_by IS NULL \
         AND approved_at IS NULL AND id NOT IN (SELECT id FROM deletion_plans WHERE target_id = $1 AND planned_by = $2 \
            AND used_by IS NULL ORDER BY planned_at DESC, id DESC LIMIT $3)",
    )
    .bind(plan.target.id)
    .bind(&plan.planned_by)
    .bind(UNUSED_MAX - 1)
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "INSERT INTO deletion_plans (id, revision, kind, target_id, name, project_id, cascade, \
         planned_by, planned_at, expires_at, digest, members, shown) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    )
    .bind(plan.id.as_uuid())
    .bind(plan.revision.0)
    .bind(plan.target.kind.as_str())
    .bind(plan.target.id)
    .bind(&plan.name)
    .bind(plan.project_id.map(|project| project.as_uuid()))
    .bind(i32::from(plan.cascade))
    .bind(&plan.planned_by)
    .bind(Micros::from(plan.planned_at))
    .bind(Micros::from(plan.expires_at))
    .bind(&plan.digest)
    .bind(plan.members.as_str())
    .bind(Json(&plan.shown))
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes what a plan became, unless the plan was written since it was read.
pub(crate) async fn used(connection: &mut Connection, row: &Use) -> Result<(), Failure> {
    let written = sqlx::query(
        "UPDATE deletion_plans SET used_by = $3, revision = revision + 1 \
         WHERE id = $1 AND revision = $2 AND used_by IS NULL",
    )
    .bind(row.plan.as_uuid())
    .bind(row.revision.0)
    .bind(row.by.as_uuid())
    .execute(connection)
    .await?;
    let stale = || writes::stale(PlanId::KIND, row.plan, row.revision);
    writes::one_row(written.rows_affected(), stale)
}

/// Writes who approved a plan, unless the plan was written since it was read. It can be
/// used for as long as the approval holds.
pub(crate) async fn approved(connection: &mut Connection, row: &Approved) -> Result<(), Failure> {
    let Approval { by, reason, at, until } = &row.approval;
    let written = sqlx::query(
        "UPDATE deletion_plans SET approved_by = $3, approved_reason = $4, approved_at = $5, \
         approved_until = $6, expires_at = $6, revision = revision + 1 \
         WHERE id = $1 AND revision = $2 AND used_by IS NULL",
    )
    .bind(row.plan.as_uuid())
    .bind(row.revision.0)
    .bind(by)
    .bind(reason)
    .bind(Micros::from(*at))
    .bind(Micros::from(*until))
    .execute(connection)
    .await?;
    let stale = || writes::stale(PlanId::KIND, row.plan, row.revision);
    writes::one_row(written.rows_affected(), stale)
}

/// A plan by its id, its row locked, and the key that asks.
pub(crate) struct ById<'a> {
    pub(crate) id: PlanId,
    pub(crate) approver: Option<&'a str>,
}

impl Load for ById<'_> {
    type Snapshot = PlanSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<PlanSnapshot, Failure> {
        sqlx::query(sql!("SELECT id FROM deletion_plans WHERE id = $1", for_update))
            .bind(self.id.as_uuid())
            .fetch_optional(&mut *connection)
            .await?;
        let found = fetch(connection, self.id).await?;
        let plan = found.ok_or(Failure::NotFound { kind: PlanId::KIND })?;
        let planner = plan.planned_by.strip_prefix("key:");
        Ok(PlanSnapshot {
            now: now(connection).await?,
            planner: holder(connection, planner).await?,
            approver: holder(connection, self.approver).await?,
            plan,
        })
    }
}

/// Who asks and who approved, if the plan is approved.
pub(crate) async fn people(
    connection: &mut Connection,
    plan: &Plan,
    caller: Option<&str>,
) -> Result<Option<People>, Failure> {
    let Some(approval) = &plan.approval else { return Ok(None) };
    Ok(Some(People {
        caller: holder(connection, caller).await?,
        approver: holder(connection, Some(&approval.by)).await?,
    }))
}

async fn holder(connection: &mut Connection, key: Option<&str>) -> Result<Option<Holder>, Failure> {
    match key {
        Some(key) => api_keys::holder(connection, key).await,
        None => Ok(None),
    }
}

/// Removes expired plans, used or not.
pub(crate) async fn prune(connection: &mut Connection, limit: u32) -> Result<End<u64>, Failure> {
    let removed = sqlx::query(sql!(
        "DELETE FROM deletion_plans WHERE id IN (SELECT id FROM deletion_plans \
         WHERE expires_at <= ",
        now,
        " ORDER BY expires_at, id LIMIT $1)"
    ))
    .bind(i64::from(limit))
    .execute(connection)
    .await?;
    Ok(match removed.rows_affected() {
        0 => End::Rollback(0),
        removed => End::Commit(removed),
    })
}
