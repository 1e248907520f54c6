//! Dispatches each write of tenants to the function of its table. Edges of many jobs are one
//! statement.

use slipway_core::tenants::TenantsWrite;

use super::table::{insert, update};
use super::{Connection, jobs, profile, tasks, tenant, writes};
use crate::failure::Failure;

pub(crate) async fn apply(
    connection: &mut Connection,
    writes: &[&TenantsWrite],
) -> Result<(), Failure> {
    let mut advances = Vec::new();
    for write in writes {
        match write {
            TenantsWrite::ProfileInsert(row) => {
                insert(connection, &profile::INSERT, row, "name").await?;
            }
            TenantsWrite::ProfileUpdate(row) => update(connection, &profile::UPDATE, row).await?,
            TenantsWrite::TenantInsert(row) => {
                insert(connection, &tenant::INSERT, row, "name").await?;
            }
            TenantsWrite::TenantUpdate(row) => update(connection, &tenant::UPDATE, row).await?,
            TenantsWrite::JobInsert(job) => jobs::insert(connection, job).await?,
            TenantsWrite::JobResume(job) => jobs::resume(connection, job).await?,
            TenantsWrite::Advance(advance) => advances.push(advance),
            TenantsWrite::Migrating(members) => tasks::migrating(connection, *members).await?,
        }
    }
    let stale =
        |one: &slipway_core::tenants::write::Advance| writes::stale("tenant", one.id, one.read);
    tenant::ADVANCE.write_guarded(connection, &advances, stale).await
}
