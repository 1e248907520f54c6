//! The table of tenant profiles.

use slipway_core::catalog::Name;
use slipway_core::ids::{DeletionId, Revision, TenantProfileId};
use slipway_core::tenants::profile::{ProfileSnapshot, TenantProfile};
use uuid::Uuid;

use super::page::{count, now};
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;

impl Table for TenantProfile {
    queries!(
        "tenant_profiles",
        "name",
        "id, revision, name, description, settings, deletion_id, deleted_at, created_at, updated_at"
    );

    async fn load(connection: &mut Connection, key: &str) -> Result<ProfileSnapshot, Failure> {
        let profile = table::lock::<Self>(connection, key).await?;
        let tenants = match &profile {
            Some(profile) => {
                let of = "SELECT count(*) AS found FROM tenants WHERE profile_id = $1";
                count(connection, of, profile.id.as_uuid()).await?
            }
            None => 0,
        };
        Ok(ProfileSnapshot { now: now(connection).await?, profile, tenants })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: TenantProfileId::new(rows::get(row, "id")?),
            name: Name::from_stored(rows::get(row, "name")?),
            description: rows::get(row, "description")?,
            settings: rows::json(row, "settings")?,
            revision: Revision(rows::get(row, "revision")?),
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

pub(crate) const MARKS: Marks = marks!("tenant_profiles", "name", "NULL");

pub(crate) const INSERT: RowSet<TenantProfile> = insert_rows!(guarded, "tenant_profiles", |row: &TenantProfile| {
    id: uuid = row.id,
    name: text = row.name,
    description: text = row.description,
    settings: json = row.settings,
    created_at: time = row.created_at,
    updated_at: time = row.updated_at,
});

pub(crate) const UPDATE: RowSet<TenantProfile> = update_rows!(dated, "tenant_profiles" by id, |row: &TenantProfile| {
    description: text = row.description,
    settings: json = row.settings,
});
