//! Enrolment: locks the resource of the token and a free address of its project.
//!
//! A nonce and a public key are unique in a project. The rule refuses those that
//! it finds taken. Two enrolments that bring the same one at once both find it
//! free; the index lets one of them commit, and the other is decided again.

use slipway_app::broker::port::ResourceKey;
use slipway_app::ports::store::{Error, Rule};
use slipway_core::nodes::enrol::EnrolSnapshot;
use slipway_core::nodes::mesh::MeshPool;
use slipway_core::nodes::token::SecretHash;
use slipway_core::{ErrorKind, Timestamp};
use sqlx::Row as _;

use super::broker::decide;
use super::mesh::{self, Locked};
use super::page::hydrate;
use super::transaction::{Decision, Load};
use super::{Backend, Connection};
use crate::failure::Failure;
use crate::micros::Micros;

/// An enrolment with a token.
struct Enrolment<'a> {
    resource: decide::ByKey<'a>,
    nonce: Option<&'a str>,
    public_key: &'a [u8; 32],
    locked: Locked,
}

impl Load for Enrolment<'_> {
    type Snapshot = EnrolSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<EnrolSnapshot, Failure> {
        let mut resource = self.resource.load(connection).await?;
        let project = resource.resource.project_id;
        let free = mesh::lock_free(connection, project, self.locked).await?;
        // The network is read after the lock of the address: it cannot change
        // while a number of it is locked.
        let row = sqlx::query(sql!(
            "SELECT $1 AS id, ",
            now,
            " AS now, (SELECT mesh_cidr FROM projects WHERE id = $1) AS mesh_cidr, \
             (SELECT count(*) FROM bootstrap_tokens WHERE project_id = $1 \
             AND consumed_nonce = $2) AS with_nonce, \
             (SELECT count(*) FROM mesh_addresses WHERE project_id = $1 \
             AND public_key = $3) AS with_key"
        ))
        .bind(project.as_uuid())
        .bind(self.nonce)
        .bind(&self.public_key[..])
        .fetch_one(&mut *connection)
        .await?;
        // A lock may have been waited for.
        resource.now = Timestamp::from(row.try_get::<Micros, _>("now")?);
        Ok(EnrolSnapshot {
            resource,
            pool: MeshPool { cidr: hydrate(&row, "id", mesh::cidr)?, free },
            nonce_taken: row.try_get::<i64, _>("with_nonce")? > 0,
            public_key_taken: row.try_get::<i64, _>("with_key")? > 0,
        })
    }
}

/// Decides an enrolment. If the rule found no free address, the pool is extended
/// and the rule asked again; each round means that somebody got an address, until
/// the network has no more.
pub(crate) async fn decide_enrolment(
    backend: &Backend,
    token: SecretHash,
    nonce: Option<&str>,
    public_key: &[u8; 32],
    rule: &mut Rule<'_, EnrolSnapshot>,
) -> Result<(), Error> {
    let (mut locked, mut collided) = (Locked::Skipped, false);
    loop {
        let key = ResourceKey::Token(token);
        let resource = decide::ByKey { blueprints: &backend.blueprints, key };
        let key = Enrolment { resource, nonce, public_key, locked };
        let decision = Decision { key, rule: &mut *rule, beside: None };
        match Box::pin(backend.database.transact(decision)).await {
            Err(Failure::Refused(refusal))
                if refusal.kind == ErrorKind::PoolExhausted && locked == Locked::Skipped =>
            {
                if !backend.write(token, mesh::extend).await? {
                    locked = Locked::Awaited;
                }
            }
            Err(Failure::Database(error)) if !collided && is_unique_violation(&error) => {
                collided = true;
            }
            outcome => return Ok(outcome?),
        }
    }
}

fn is_unique_violation(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}
