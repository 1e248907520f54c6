//! What a decision about a resource locks and loads.
//!
//! It locks the resource, then its nodes, then its attempt; `transaction.rs` has
//! the order of all locks. Only decisions write what a decision about a resource
//! reads or writes, so the lock of the resource row alone serialises them. Claims, wakes and releases touch the loop's columns without it;
//! heartbeats touch a node, so the node's row is locked too, where it is loaded.

use slipway_app::broker::port::ResourceKey;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::{NodeId, ProvisionedResourceId, ResourceId};
use sqlx::Row as _;
use uuid::Uuid;

use super::nodes::tokens;
use super::transaction::Load;
use super::{Connection, hydrate, snapshot};
use crate::blueprints::Blueprints;
use crate::failure::Failure;

/// A resource by one of its keys.
pub(crate) struct ByKey<'a> {
    pub(crate) blueprints: &'a Blueprints,
    pub(crate) key: ResourceKey,
}

impl Load for ByKey<'_> {
    type Snapshot = ResourceSnapshot;

    /// Locks the resource of the key.
    async fn load(&self, connection: &mut Connection) -> Result<ResourceSnapshot, Failure> {
        let (attempt, others) = lock(connection, self.key).await?;
        let loaded =
            snapshot::load_locked(self.blueprints, connection, &[attempt], &others).await?;
        let Some((id, loaded)) = loaded.into_iter().next() else {
            return Err(Failure::NotFound { kind: ProvisionedResourceId::KIND });
        };
        let mut snapshot = loaded.map_err(|fault| Failure::Corrupt { id: id.as_uuid(), fault })?;
        if let ResourceKey::Token(hash) = self.key
            && snapshot.token.as_ref().is_none_or(|token| token.hash != hash)
        {
            snapshot.presented = tokens::by_hash(connection, hash).await?;
        }
        Ok(snapshot)
    }
}

/// Locks the resource of the key and answers the attempt to decide on. Attempt,
/// token and node never change their resource, so a row that was waited for is
/// still that of the key. The current attempt of a resource may change, so it is
/// read after the lock. If the resource has two, answers both, too.
async fn lock(
    connection: &mut Connection,
    key: ResourceKey,
) -> Result<(ProvisionedResourceId, Vec<Uuid>), Failure> {
    let (kind, lock) = match key {
        ResourceKey::Resource(id) => (
            ResourceId::KIND,
            sqlx::query(sql!(
                "SELECT r.id, r.surge_from AS r_surge_from, r.surge_to AS r_surge_to \
                 FROM resources r WHERE r.id = $1",
                for_update
            ))
            .bind(id.as_uuid()),
        ),
        ResourceKey::Attempt(id) => (
            ProvisionedResourceId::KIND,
            sqlx::query(sql!(
                "SELECT r.id, a.id AS attempt, r.surge_from AS r_surge_from, \
                 r.surge_to AS r_surge_to FROM provisioned_resources a \
                 JOIN resources r ON r.id = a.resource_id WHERE a.id = $1",
                (for_update_of "r")
            ))
            .bind(id.as_uuid()),
        ),
        ResourceKey::Token(ref hash) => (
            "bootstrap_token",
            sqlx::query(sql!(
                "SELECT r.id, a.id AS attempt, r.surge_from AS r_surge_from, \
                 r.surge_to AS r_surge_to FROM bootstrap_tokens t \
                 JOIN provisioned_resources a ON a.id = t.provisioned_resource_id \
                 JOIN resources r ON r.id = a.resource_id WHERE t.hash = $1",
                (for_update_of "r")
            ))
            .bind(&hash.as_bytes()[..]),
        ),
        ResourceKey::Node(id) => (
            NodeId::KIND,
            sqlx::query(sql!(
                "SELECT r.id, n.provisioned_resource_id AS attempt, \
                 r.surge_from AS r_surge_from, r.surge_to AS r_surge_to FROM nodes n \
                 JOIN resources r ON r.id = n.resource_id WHERE n.id = $1",
                (for_update_of "r")
            ))
            .bind(id.as_uuid()),
        ),
    };
    let locked = lock.fetch_optional(&mut *connection).await?;
    let locked = locked.ok_or(Failure::NotFound { kind })?;
    let attempt: Uuid = match key {
        ResourceKey::Resource(id) => current_attempt(connection, id.as_uuid()).await?,
        _ => locked.try_get("attempt")?,
    };
    let others = hydrate::pair(&locked)?.filter(|pair| pair.contains(&attempt));
    Ok((ProvisionedResourceId::new(attempt), others.into_iter().flatten().collect()))
}

async fn current_attempt(connection: &mut Connection, resource: Uuid) -> Result<Uuid, Failure> {
    let row = sqlx::query(
        "SELECT id FROM provisioned_resources WHERE resource_id = $1 AND in_use <> 0 \
         ORDER BY attempt DESC LIMIT 1",
    )
    .bind(resource)
    .fetch_optional(connection)
    .await?
    .ok_or(Failure::NotFound { kind: ProvisionedResourceId::KIND })?;
    Ok(row.try_get("id")?)
}
