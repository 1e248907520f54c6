//! Machines that people boot by hand. Written by the engine; a person's word that one is
//! gone is part of a decision (see [`super::write`]).

use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::ids::{ClaimToken, Partition, ProvisionedResourceId};
use slipway_core::nodes::machine::Machine;
use slipway_durable::database::End;

use super::page::{after, fetch_one, fetch_page, readable};
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

macro_rules! select_machines {
    () => {
        "SELECT provisioned_resource_id AS id, namespace, name, owned_hash, claim_token, \
         confirm_gone, terminating_at FROM manual_machines "
    };
}

fn hydrate(row: &Row) -> Result<Machine, Fault> {
    let confirm_gone: i32 = rows::get(row, "confirm_gone")?;
    Ok(Machine {
        provisioned_resource_id: ProvisionedResourceId::new(rows::get(row, "id")?),
        namespace: rows::get(row, "namespace")?,
        name: rows::get(row, "name")?,
        owned_hash: rows::get(row, "owned_hash")?,
        claim_token: ClaimToken(rows::get(row, "claim_token")?),
        confirm_gone: confirm_gone != 0,
        terminating_at: rows::time_or_null(row, "terminating_at")?,
    })
}

pub(crate) async fn load(
    connection: &mut Connection,
    attempts: &[ProvisionedResourceId],
) -> Result<Vec<Machine>, Failure> {
    let list: IdList = attempts.iter().map(|id| id.as_uuid()).collect();
    let query = concat!(select_machines!(), sql!("WHERE provisioned_resource_id ", (one_of "$1")));
    let found = sqlx::query(query).bind(list).fetch_all(connection).await?;
    Ok(readable("machine", &found, hydrate))
}

pub(crate) async fn put(
    connection: &mut Connection,
    (partition, machine): (Partition, &Machine),
) -> Result<End<Machine>, Failure> {
    let id = machine.provisioned_resource_id.as_uuid();
    sqlx::query(
        "INSERT INTO manual_machines (provisioned_resource_id, partition, namespace, name, \
         owned_hash, claim_token, confirm_gone) VALUES ($1, $2, $3, $4, $5, $6, $7) \
         ON CONFLICT (provisioned_resource_id) DO UPDATE SET owned_hash = excluded.owned_hash, \
         claim_token = excluded.claim_token, confirm_gone = excluded.confirm_gone \
         WHERE manual_machines.claim_token <= excluded.claim_token \
         AND manual_machines.terminating_at IS NULL",
    )
    .bind(id)
    .bind(partition.as_uuid())
    .bind(&machine.namespace)
    .bind(&machine.name)
    .bind(&machine.owned_hash)
    .bind(machine.claim_token.0)
    .bind(i32::from(machine.confirm_gone))
    .execute(&mut *connection)
    .await?;
    let query = sqlx::query(concat!(select_machines!(), "WHERE provisioned_resource_id = $1"));
    let now = fetch_one(connection, query.bind(id), "id", hydrate).await?;
    Ok(End::Commit(now.unwrap_or_else(|| machine.clone())))
}

pub(crate) async fn release(
    connection: &mut Connection,
    attempt: ProvisionedResourceId,
) -> Result<End<()>, Failure> {
    for statement in [
        "DELETE FROM manual_machines WHERE provisioned_resource_id = $1 AND confirm_gone = 0",
        sql!(
            "UPDATE manual_machines SET terminating_at = coalesce(terminating_at, ",
            now,
            ") WHERE provisioned_resource_id = $1"
        ),
    ] {
        sqlx::query(statement).bind(attempt.as_uuid()).execute(&mut *connection).await?;
    }
    Ok(End::Commit(()))
}

pub(crate) async fn list(
    connection: &mut Connection,
    (partition, page): (Partition, Page<ProvisionedResourceId>),
) -> Result<Listed<Machine>, Failure> {
    let query = sqlx::query(concat!(
        select_machines!(),
        "WHERE partition = $1 AND provisioned_resource_id > $2 \
         ORDER BY provisioned_resource_id LIMIT $3"
    ))
    .bind(partition.as_uuid())
    .bind(after(page))
    .bind(i64::from(page.limit));
    fetch_page(connection, query, ("machine", "id"), page, hydrate).await
}

/// A person said that these are gone.
pub(crate) async fn remove(
    connection: &mut Connection,
    gone: &[ProvisionedResourceId],
) -> Result<(), Failure> {
    if gone.is_empty() {
        return Ok(());
    }
    let list: IdList = gone.iter().map(|id| id.as_uuid()).collect();
    let statement =
        sql!("DELETE FROM manual_machines WHERE provisioned_resource_id ", (one_of "$1"));
    sqlx::query(statement).bind(list).execute(connection).await?;
    Ok(())
}
