//! The database as a stranger reads it, for what no port tells.

use serde_json::Value;
use slipway_core::ids::ProvisionedResourceId;
use sqlx::types::Json;
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use uuid::Uuid;

pub(super) enum Raw {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

const AUDIT: &str = "SELECT verb, details FROM audit_entries WHERE subject_id = $1";
const TOKENS: &str = "SELECT id, consumed_at IS NULL AND revoked_at IS NULL \
     FROM bootstrap_tokens WHERE provisioned_resource_id = $1";
/// Never due, and as if under a lease without end, which a wake respects.
const RETIRE_SQLITE: &str = "UPDATE provisioned_resources SET due_at = NULL, \
     claimed_by = 'retired', lease_until = 9000000000000000 WHERE id = $1";
const RETIRE_POSTGRES: &str = "UPDATE provisioned_resources SET due_at = NULL, \
     claimed_by = 'retired', lease_until = clock_timestamp() + interval '1 year' WHERE id = $1";

impl Raw {
    pub(super) async fn open(url: &str) -> Self {
        if url.starts_with("sqlite:") {
            Self::Sqlite(SqliteConnection::connect(url).await.unwrap())
        } else {
            Self::Postgres(PgConnection::connect(url).await.unwrap())
        }
    }

    /// What was written down about a subject: verb and details, in no order.
    pub(super) async fn audit(&mut self, subject: Uuid) -> Vec<(String, Value)> {
        let rows: Vec<(String, Json<Value>)> = match self {
            Self::Sqlite(connection) => {
                sqlx::query_as(AUDIT).bind(subject).fetch_all(connection).await.unwrap()
            }
            Self::Postgres(connection) => {
                sqlx::query_as(AUDIT).bind(subject).fetch_all(connection).await.unwrap()
            }
        };
        rows.into_iter().map(|(verb, details)| (verb, details.0)).collect()
    }

    /// Every token that was ever minted for an attempt, and whether it is open:
    /// neither used nor revoked.
    pub(super) async fn tokens(&mut self, attempt: ProvisionedResourceId) -> Vec<(Uuid, bool)> {
        let id = attempt.as_uuid();
        let rows = match self {
            Self::Sqlite(connection) => sqlx::query_as(TOKENS).bind(id).fetch_all(connection).await,
            Self::Postgres(connection) => {
                sqlx::query_as(TOKENS).bind(id).fetch_all(connection).await
            }
        };
        rows.unwrap()
    }

    /// Nothing looks at this attempt again: whatever is still to be done about
    /// it must not happen in the middle of another run.
    pub(super) async fn retire(&mut self, attempt: ProvisionedResourceId) {
        let id = attempt.as_uuid();
        let query = match self {
            Self::Sqlite(connection) => {
                sqlx::query(RETIRE_SQLITE).bind(id).execute(connection).await.map(|_| ())
            }
            Self::Postgres(connection) => {
                sqlx::query(RETIRE_POSTGRES).bind(id).execute(connection).await.map(|_| ())
            }
        };
        query.unwrap();
    }
}
