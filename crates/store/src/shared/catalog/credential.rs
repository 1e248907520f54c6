//! The tables of credentials and of their assignments to projects.

use slipway_app::catalog::port::{CredentialFilter, CredentialKey};
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::catalog::Name;
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::credential::{
    Coordinates, Credential, CredentialAssignment, CredentialAssignmentSnapshot, CredentialSnapshot,
};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{CloudCredentialId, CloudId, DeletionId, ProjectId, Revision};
use sqlx::Row as _;
use uuid::Uuid;

use super::broker::users;
use super::page::{Query, after, as_id, count, fetch_one, listed, now};
use super::row_set::RowSet;
use super::table::{self, Lock, Marks, Table};
use super::transaction::Load;
use super::{Connection, Row, project, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;
use crate::micros::Micros;

macro_rules! columns {
    () => {
        "k.id, k.revision, k.cloud_id, k.name, k.kv_mount, k.kv_path, k.deletion_id, \
         k.deleted_at, k.created_at, k.updated_at"
    };
}

macro_rules! select {
    () => {
        concat!("SELECT ", columns!(), " FROM cloud_credentials k ")
    };
}

impl Table for Credential {
    const NAMED: &'static str = concat!(
        select!(),
        "WHERE k.deleted_at IS NULL AND k.name IN (SELECT given.name FROM ",
        rows_from_json!(name: text),
        ")"
    );

    fn fetch_query(reference: &str, show_deleted: bool) -> Query<'_> {
        sqlx::query(concat!(select!(), "WHERE k.id = $1 AND ($2 OR k.deleted_at IS NULL)"))
            .bind(as_id(reference))
            .bind(show_deleted)
    }

    fn lock_query(reference: &str, lock: Lock) -> Query<'_> {
        macro_rules! live {
            ($lock:tt) => {
                concat!(select!(), "WHERE k.id = $1 AND k.deleted_at IS NULL", sql!($lock))
            };
        }
        let statement = match lock {
            Lock::Update => live!(for_update),
            Lock::Share => live!(for_share),
        };
        sqlx::query(statement).bind(as_id(reference))
    }

    fn page_query(filter: &CredentialFilter, page: Page<CloudCredentialId>) -> Query<'_> {
        sqlx::query(concat!(
            select!(),
            "JOIN clouds c ON c.id = k.cloud_id \
             WHERE k.id > $1 AND ($2 OR k.deleted_at IS NULL) \
             AND ($3 IS NULL OR (c.name = $3 AND c.deleted_at IS NULL) OR c.id = $4) \
             AND ($5 IS NULL OR k.name = $5) ORDER BY k.id LIMIT $6"
        ))
        .bind(after(page))
        .bind(filter.show_deleted)
        .bind(filter.cloud.as_deref())
        .bind(filter.cloud.as_deref().and_then(as_id))
        .bind(filter.name.as_deref())
        .bind(i64::from(page.limit))
    }

    /// Every writer locks the cloud before the credential.
    async fn load(
        connection: &mut Connection,
        key: &CredentialKey,
    ) -> Result<CredentialSnapshot, Failure> {
        let (cloud, credential) = match key {
            CredentialKey::New { cloud, name } => {
                let cloud = table::share::<Cloud>(connection, cloud).await?;
                let holder = match &cloud {
                    Some(cloud) => by_name(connection, cloud.id, name).await?,
                    None => None,
                };
                (cloud, holder)
            }
            CredentialKey::Existing(id) => {
                let cloud = match cloud_of(connection, *id).await? {
                    Some(id) => table::share::<Cloud>(connection, &id.to_string()).await?,
                    None => None,
                };
                (cloud, table::lock::<Self>(connection, &id.to_string()).await?)
            }
        };
        let (projects, resources) = match &credential {
            Some(credential) => uses(connection, credential.id).await?,
            None => (0, 0),
        };
        let now = now(connection).await?;
        Ok(CredentialSnapshot { now, cloud, credential, projects, resources })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: CloudCredentialId::new(rows::get(row, "id")?),
            cloud_id: CloudId::new(rows::get(row, "cloud_id")?),
            name: Name::from_stored(rows::get(row, "name")?),
            coordinates: Coordinates {
                kv_mount: rows::get(row, "kv_mount")?,
                kv_path: rows::get(row, "kv_path")?,
            },
            revision: Revision(rows::get(row, "revision")?),
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

/// The cloud of a credential never changes.
pub(crate) async fn cloud_of(
    connection: &mut Connection,
    id: CloudCredentialId,
) -> Result<Option<Uuid>, sqlx::Error> {
    let row = sqlx::query("SELECT cloud_id FROM cloud_credentials WHERE id = $1")
        .bind(id.as_uuid())
        .fetch_optional(connection)
        .await?;
    row.map(|row| row.try_get("cloud_id")).transpose()
}

async fn by_name(
    connection: &mut Connection,
    cloud: CloudId,
    name: &str,
) -> Result<Option<Credential>, Failure> {
    let statement = concat!(
        select!(),
        "WHERE k.cloud_id = $1 AND k.name = $2 AND k.deleted_at IS NULL",
        sql!(for_update)
    );
    let query = sqlx::query(statement).bind(cloud.as_uuid()).bind(name);
    fetch_one(connection, query, "id", Credential::read).await
}

/// An assignment locks the credential for share, and nobody can declare with a credential
/// that is not assigned, so under the lock for update both counts cannot change.
async fn uses(
    connection: &mut Connection,
    id: CloudCredentialId,
) -> Result<(i64, i64), sqlx::Error> {
    let projects = "SELECT count(*) AS found FROM credential_assignments g \
         JOIN projects p ON p.id = g.project_id AND p.deleted_at IS NULL \
         WHERE g.cloud_credential_id = $1";
    Ok((
        count(connection, projects, id.as_uuid()).await?,
        users::of_credential(connection, id).await?,
    ))
}

/// The right of a project to use a credential.
///
/// Locks in the order of declarations: project, then assignment. The credential
/// is locked between them, which no declaration does. The project is locked as
/// declarations lock it, so that two concurrent assignments are serialised and
/// only the first one writes, also into the audit.
pub(crate) struct AssignmentOf<'a> {
    pub(crate) project: &'a str,
    pub(crate) credential: CloudCredentialId,
}

impl Load for AssignmentOf<'_> {
    type Snapshot = CredentialAssignmentSnapshot;

    async fn load(
        &self,
        connection: &mut Connection,
    ) -> Result<CredentialAssignmentSnapshot, Failure> {
        let project = project::lock(connection, self.project).await?;
        let credential =
            table::share::<Credential>(connection, &self.credential.to_string()).await?;
        let (mut assignment, mut resources) = (None, 0);
        if let (Some(project), Some(credential)) = (&project, &credential) {
            assignment = lock_assignment(connection, project.id, credential.id).await?;
            resources = users::of_assignment(connection, project.id, credential.id).await?;
        }
        let now = now(connection).await?;
        Ok(CredentialAssignmentSnapshot { now, project, credential, assignment, resources })
    }
}

async fn lock_assignment(
    connection: &mut Connection,
    project: ProjectId,
    credential: CloudCredentialId,
) -> Result<Option<CredentialAssignment>, Failure> {
    let row = sqlx::query(sql!(
        "SELECT created_at FROM credential_assignments \
         WHERE project_id = $1 AND cloud_credential_id = $2",
        for_update
    ))
    .bind(project.as_uuid())
    .bind(credential.as_uuid())
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let created_at = row.try_get::<Micros, _>("created_at")?.into();
    Ok(Some(CredentialAssignment { project_id: project, credential_id: credential, created_at }))
}

pub(crate) async fn assignment_list(
    connection: &mut Connection,
    (project, page): (ProjectId, Page<CloudCredentialId>),
) -> Result<Listed<(CredentialAssignment, Credential)>, Failure> {
    let found = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        ", g.created_at AS g_created_at FROM credential_assignments g \
         JOIN cloud_credentials k ON k.id = g.cloud_credential_id AND k.deleted_at IS NULL \
         WHERE g.project_id = $1 AND k.id > $2 ORDER BY k.id LIMIT $3"
    ))
    .bind(project.as_uuid())
    .bind(after(page))
    .bind(i64::from(page.limit))
    .fetch_all(&mut *connection)
    .await?;
    Ok(listed(CloudCredentialId::KIND, "id", &page, &found, |row| {
        let credential = Credential::read(row)?;
        let assignment = CredentialAssignment {
            project_id: project,
            credential_id: credential.id,
            created_at: rows::time(row, "g_created_at")?,
        };
        Ok((assignment, credential))
    }))
}

/// Every assignment of these projects.
pub(crate) async fn assignments_of(
    connection: &mut Connection,
    projects: &[ProjectId],
) -> Result<Vec<CredentialAssignment>, Failure> {
    let list: IdList = projects.iter().map(|id| id.as_uuid()).collect();
    let found = sqlx::query(sql!(
        "SELECT project_id, cloud_credential_id, created_at FROM credential_assignments \
         WHERE project_id ",
        (one_of "$1")
    ))
    .bind(list)
    .fetch_all(connection)
    .await?;
    let assignment = |row: &Row| {
        Ok(CredentialAssignment {
            project_id: ProjectId::new(row.try_get("project_id")?),
            credential_id: CloudCredentialId::new(row.try_get("cloud_credential_id")?),
            created_at: row.try_get::<Micros, _>("created_at")?.into(),
        })
    };
    found.iter().map(assignment).collect()
}

pub(crate) const MARKS: Marks = marks!(
    "cloud_credentials",
    "name",
    "NULL",
    "cloud_id = (SELECT own.cloud_id FROM cloud_credentials own WHERE own.id = $2)"
);

pub(crate) const INSERT: RowSet<Credential> = insert_rows!(guarded, "cloud_credentials", |credential: &Credential| {
    id: uuid = credential.id,
    cloud_id: uuid = credential.cloud_id,
    name: text = credential.name,
    kv_mount: text = credential.coordinates.kv_mount,
    kv_path: text = credential.coordinates.kv_path,
    created_at: time = credential.created_at,
    updated_at: time = credential.updated_at,
});

pub(crate) const UPDATE: RowSet<Credential> = update_rows!(dated, "cloud_credentials" by id, |credential: &Credential| {
    kv_mount: text = credential.coordinates.kv_mount,
    kv_path: text = credential.coordinates.kv_path,
});

pub(crate) const ASSIGNMENT_INSERT: RowSet<CredentialAssignment> = insert_rows!(plain, "credential_assignments", |assignment: &CredentialAssignment| {
    project_id: uuid = assignment.project_id,
    cloud_credential_id: uuid = assignment.credential_id,
    created_at: time = assignment.created_at,
});

pub(crate) async fn assignment_delete(
    connection: &mut Connection,
    assignment: &CredentialAssignment,
) -> Result<(), Failure> {
    let deleted = sqlx::query(
        "DELETE FROM credential_assignments WHERE project_id = $1 AND cloud_credential_id = $2",
    )
    .bind(assignment.project_id.as_uuid())
    .bind(assignment.credential_id.as_uuid())
    .execute(connection)
    .await?
    .rows_affected();
    writes::one_row(deleted, || {
        Refusal::new(ErrorKind::AssignmentNotFound, "the assignment was withdrawn a moment ago")
    })
}
