//! Removals that agents refused, in the rows of the agents.

use slipway_core::fleet::agent::Agent;
use slipway_core::fleet::prune::{PruneConfirmed, PruneRefusal, PruneSnapshot, RefusedPrune};
use slipway_core::ids::AgentId;

use super::page::{fetch_one, now};
use super::table;
use super::transaction::Load;
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

/// The same removal again keeps its confirmation, another one needs its own, and one without
/// objects ends the refusal.
pub(crate) async fn refuse(
    connection: &mut Connection,
    (id, refusal): (AgentId, &PruneRefusal),
) -> Result<bool, Failure> {
    let refused = sqlx::query(sql!(
        "UPDATE fleet_agents SET prune_confirmed_at = \
         CASE WHEN prune_digest = $2 THEN prune_confirmed_at END, \
         prune_digest = CASE WHEN $3 > 0 THEN $2 END, prune_objects = $3, prune_total = $4, \
         prune_refused_at = ",
        now,
        " WHERE id = $1 AND deleted_at IS NULL"
    ))
    .bind(id.as_uuid())
    .bind(&refusal.digest)
    .bind(refusal.objects)
    .bind(refusal.total)
    .execute(connection)
    .await?;
    Ok(refused.rows_affected() == 1)
}

fn refused(row: &Row) -> Result<RefusedPrune, Fault> {
    Ok(RefusedPrune {
        refusal: PruneRefusal {
            digest: rows::get(row, "prune_digest")?,
            objects: rows::get(row, "prune_objects")?,
            total: rows::get(row, "prune_total")?,
        },
        refused_at: rows::time(row, "prune_refused_at")?,
        confirmed_at: rows::time_or_null(row, "prune_confirmed_at")?,
    })
}

/// What a live agent refused last.
pub(crate) async fn fetch(
    connection: &mut Connection,
    id: AgentId,
) -> Result<Option<RefusedPrune>, Failure> {
    let query = sqlx::query(
        "SELECT id, prune_digest, prune_objects, prune_total, prune_refused_at, \
         prune_confirmed_at FROM fleet_agents \
         WHERE id = $1 AND deleted_at IS NULL AND prune_digest IS NOT NULL",
    );
    fetch_one(connection, query.bind(id.as_uuid()), "id", refused).await
}

/// An agent, locked.
pub(crate) struct PruneOf(pub(crate) AgentId);

impl Load for PruneOf {
    type Snapshot = PruneSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<PruneSnapshot, Failure> {
        let agent = table::lock::<Agent>(connection, &self.0.to_string()).await?;
        let refused = fetch(connection, self.0).await?;
        Ok(PruneSnapshot { now: now(connection).await?, agent, refused })
    }
}

pub(crate) async fn confirm(
    connection: &mut Connection,
    confirmed: &PruneConfirmed,
) -> Result<(), Failure> {
    sqlx::query(
        "UPDATE fleet_agents SET prune_confirmed_at = $3 WHERE id = $1 AND prune_digest = $2",
    )
    .bind(confirmed.agent_id.as_uuid())
    .bind(&confirmed.digest)
    .bind(Micros::from(confirmed.at))
    .execute(connection)
    .await?;
    Ok(())
}
