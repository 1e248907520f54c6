//! What is particular to PostgreSQL: connections, the columns of the table, locks, and the few
//! expressions that only it spells so.

use std::str::FromStr as _;
use std::sync::Arc;

use slipway_durable::database::{Gateway, STATEMENT_LIMIT, Source, TableName, postgres};
use sqlx::postgres::{PgConnectOptions, PgPool};

use super::{Connection, Store};
use crate::Error;

impl Store {
    /// A store in the database of a pool that the caller has. Empty means
    /// [`DEFAULT_TABLE`](crate::DEFAULT_TABLE).
    pub fn with_pool(pool: PgPool, table: &str) -> Result<Self, Error> {
        let source = Source::Fixed { writer: pool.clone(), readers: pool };
        Self::new(Arc::new(Gateway::new(source, postgres::BEGIN, STATEMENT_LIMIT)), table)
    }

    /// A store with connections of its own, opened when they are needed.
    pub fn connect(url: &str, max_connections: u32, table: &str) -> Result<Self, Error> {
        let options = PgConnectOptions::from_str(url)
            .map_err(|error| Error::Database(crate::redacted(&error.to_string())))?
            .application_name("slipway-tenants")
            .options([
                ("lock_timeout", "10s"),
                ("statement_timeout", "30s"),
                ("idle_in_transaction_session_timeout", "60s"),
                ("default_transaction_isolation", "read committed"),
                ("jit", "off"),
                // By keys and indexes, also if a plan was made while the table was empty.
                ("enable_hashjoin", "off"),
                ("enable_mergejoin", "off"),
                ("enable_seqscan", "off"),
            ]);
        let database = postgres::gateway(options, max_connections, STATEMENT_LIMIT);
        Self::new(Arc::new(database), table)
    }
}

/// Whether this database can have such a table.
pub(super) fn is_possible(_: &TableName) -> bool {
    true
}

/// The documented columns, then ours: name, definition, and the default that existing rows
/// get. That one is constant, so that adding the column rewrites nothing.
pub(super) const EIGHT: &str = "id varchar(255) PRIMARY KEY,
    tenant_id varchar(255) NOT NULL,
    state varchar(32) NOT NULL DEFAULT 'pending',
    attempts integer NOT NULL DEFAULT 0,
    last_error text NOT NULL DEFAULT '',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()";
pub(super) const EXTRA: [(&str, &str, &str); 16] = [
    ("partition", "varchar(255) NOT NULL", "''"),
    ("retry_of", "varchar(255)", "NULL"),
    ("due_at", "timestamptz", "timestamptz 'epoch'"),
    ("wake", "bigint NOT NULL", "0"),
    ("claim_token", "bigint NOT NULL", "0"),
    ("claimed_wake", "bigint NOT NULL", "0"),
    ("result_token", "bigint NOT NULL", "0"),
    ("claimed_by", "text", "NULL"),
    ("lease_until", "timestamptz", "NULL"),
    ("failures", "integer NOT NULL", "0"),
    ("made", "jsonb", "NULL"),
    ("leaked", "jsonb NOT NULL", "'[]'"),
    ("history", "jsonb NOT NULL", "'[]'"),
    ("paused", "text", "NULL"),
    ("cancelled", "text", "NULL"),
    ("decommissioned_at", "timestamptz", "NULL"),
];
pub(super) const TABLE_OPTIONS: &str = "";
pub(super) const AFTER_UPGRADE: Option<&str> =
    Some("ALTER TABLE {table} ALTER COLUMN due_at SET DEFAULT clock_timestamp()");

/// A table with the documented columns alone, with the defaults of the others.
pub(super) const EIGHT_COLUMNS: &str = "(SELECT id, tenant_id, state, attempts, last_error, metadata, \
     created_at, updated_at, '' AS partition, NULL::text AS retry_of, 0 AS failures, \
     NULL::timestamptz AS due_at, NULL::text AS claimed_by, NULL::timestamptz AS lease_until, \
     0::bigint AS claim_token, 0::bigint AS result_token, NULL::jsonb AS made, '[]'::jsonb AS leaked, \
     '[]'::jsonb AS history, NULL::text AS paused, NULL::text AS cancelled, \
     NULL::timestamptz AS decommissioned_at FROM {table}) AS jobs";

pub(super) const COLUMNS_OF: &str = "SELECT attname::text AS name FROM pg_attribute \
     WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";
pub(super) const INDEXES_OF: &str = "SELECT c.relname::text AS name FROM pg_index i \
     JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = to_regclass($1)";

/// The name for the two above.
pub(super) const CATALOG_NAME: &str = "{table}";

/// The entries of the history with the new ones, whose time the database knows.
pub(super) const HISTORY: &str = "history || (SELECT coalesce(jsonb_agg(entry || jsonb_build_object('at', \
     coalesce(given.at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint))), '[]') \
     FROM jsonb_array_elements(given.entries) AS entry)";

pub(super) fn lacks_a_column(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.as_deref() == Some("42703")
}

/// Serialises who makes the table.
pub(super) async fn lock_table(
    connection: &mut Connection,
    table: &TableName,
) -> Result<(), sqlx::Error> {
    lock(connection, &[key(&["table", &table.to_string()])]).await
}

/// Serialises who inserts jobs of these tenants, until the end of the transaction. The
/// partial index alone would not do: it lets a job in at the moment when the one before
/// becomes ready.
pub(super) async fn lock_tenants(
    connection: &mut Connection,
    table: &TableName,
    tenants: impl Iterator<Item = &str> + Send,
) -> Result<(), sqlx::Error> {
    let table = table.to_string();
    let mut keys: Vec<i64> = tenants.map(|tenant| key(&["tenant", &table, tenant])).collect();
    // In one order, or two batches of the same tenants would wait for each other.
    keys.sort_unstable();
    keys.dedup();
    lock(connection, &keys).await
}

async fn lock(connection: &mut Connection, keys: &[i64]) -> Result<(), sqlx::Error> {
    const LOCK: &str = "SELECT pg_advisory_xact_lock(key) FROM unnest($1::bigint[]) AS key";
    sqlx::query(LOCK).bind(keys).execute(connection).await?;
    Ok(())
}

/// FNV-1a: the same in every version of every program. Two tenants with the same key only
/// wait for each other.
fn key(parts: &[&str]) -> i64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    i64::from_ne_bytes(hash.to_ne_bytes())
}
