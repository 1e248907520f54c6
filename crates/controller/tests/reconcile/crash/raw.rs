//! Direct SQL for what no port exposes.

use slipway_core::ids::{ProvisionedResourceId, ResourceId, WorkspaceId};
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use uuid::Uuid;

type AuditRow = (String, Option<Uuid>, Option<String>, Option<String>);

/// An audit entry, with the state change that it announces.
#[derive(Debug)]
pub(super) struct Audited {
    pub(super) verb: String,
    pub(super) changed_id: Option<Uuid>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
}

pub(super) enum Raw {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

const AUDIT: &str =
    "SELECT verb, changed_id, from_state, to_state FROM audit_entries WHERE subject_id = $1";
const QUIET: &str = "SELECT from_state, to_state FROM state_changes WHERE subject_id = $1";
const TOKENS: &str = "SELECT id, consumed_at IS NULL AND revoked_at IS NULL \
     FROM bootstrap_tokens WHERE provisioned_resource_id = $1";
const LEAKS: &str = "SELECT kind, resolved_at IS NOT NULL FROM leak_records WHERE subject_id = $1";
const SERVERS: &str = "SELECT r.id, a.id FROM resources r \
     JOIN provisioned_resources a ON a.resource_id = r.id WHERE r.workspace_id = $1 \
     ORDER BY r.handle, a.attempt";
/// As if an hour had passed since it was Deleted.
const AGE_SQLITE: &str = "UPDATE provisioned_resources SET due_at = 1, \
     phase_since = phase_since - 3600000000 WHERE id = $1 AND status = 'Deleted'";
const AGE_POSTGRES: &str = "UPDATE provisioned_resources SET due_at = clock_timestamp(), \
     phase_since = phase_since - interval '1 hour' WHERE id = $1 AND status = 'Deleted'";
/// Never due, and as if under an endless lease, which a wake respects.
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

    /// The audit entries of a subject, unordered.
    pub(super) async fn audit(&mut self, subject: Uuid) -> Vec<Audited> {
        let rows: Result<Vec<AuditRow>, _> = match self {
            Self::Sqlite(connection) => {
                sqlx::query_as(AUDIT).bind(subject).fetch_all(connection).await
            }
            Self::Postgres(connection) => {
                sqlx::query_as(AUDIT).bind(subject).fetch_all(connection).await
            }
        };
        let audited = |(verb, changed_id, from, to)| Audited { verb, changed_id, from, to };
        rows.unwrap().into_iter().map(audited).collect()
    }

    /// The state changes of a subject that nothing announced: from and to, unordered.
    pub(super) async fn quiet_changes(&mut self, subject: Uuid) -> Vec<(String, String)> {
        let rows = match self {
            Self::Sqlite(connection) => {
                sqlx::query_as(QUIET).bind(subject).fetch_all(connection).await
            }
            Self::Postgres(connection) => {
                sqlx::query_as(QUIET).bind(subject).fetch_all(connection).await
            }
        };
        rows.unwrap()
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

    /// The leaks recorded of a deleted attempt: the kind, and whether it is resolved.
    pub(super) async fn leaks(&mut self, attempt: ProvisionedResourceId) -> Vec<(String, bool)> {
        let id = attempt.as_uuid();
        let rows = match self {
            Self::Sqlite(connection) => sqlx::query_as(LEAKS).bind(id).fetch_all(connection).await,
            Self::Postgres(connection) => {
                sqlx::query_as(LEAKS).bind(id).fetch_all(connection).await
            }
        };
        rows.unwrap()
    }

    /// Every attempt of every server that a workspace ever had, by name and number.
    pub(super) async fn servers(
        &mut self,
        workspace: WorkspaceId,
    ) -> Vec<(ResourceId, ProvisionedResourceId)> {
        let id = workspace.as_uuid();
        let rows: Result<Vec<(Uuid, Uuid)>, _> = match self {
            Self::Sqlite(connection) => {
                sqlx::query_as(SERVERS).bind(id).fetch_all(connection).await
            }
            Self::Postgres(connection) => {
                sqlx::query_as(SERVERS).bind(id).fetch_all(connection).await
            }
        };
        let ids =
            |(server, attempt)| (ResourceId::new(server), ProvisionedResourceId::new(attempt));
        rows.unwrap().into_iter().map(ids).collect()
    }

    /// Advances the time to the second proof of absence.
    pub(super) async fn age(&mut self, attempt: ProvisionedResourceId) {
        self.change(AGE_SQLITE, AGE_POSTGRES, attempt).await;
    }

    /// Hides this attempt from the loop: whatever is still to be done about it
    /// must not happen in the middle of another run.
    pub(super) async fn retire(&mut self, attempt: ProvisionedResourceId) {
        self.change(RETIRE_SQLITE, RETIRE_POSTGRES, attempt).await;
    }

    async fn change(
        &mut self,
        sqlite: &'static str,
        postgres: &'static str,
        attempt: ProvisionedResourceId,
    ) {
        let id = attempt.as_uuid();
        let changed = match self {
            Self::Sqlite(connection) => sqlx::query(sqlite)
                .bind(id)
                .execute(connection)
                .await
                .map(|done| done.rows_affected()),
            Self::Postgres(connection) => sqlx::query(postgres)
                .bind(id)
                .execute(connection)
                .await
                .map(|done| done.rows_affected()),
        };
        assert_eq!(changed.unwrap(), 1, "{attempt} was changed");
    }
}
