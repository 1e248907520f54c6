//! The text of the statements, with `{table}` for the checked name of the table.

use slipway_durable::claim::Table;
use slipway_durable::database::TableName;

use super::{Db, EIGHT_COLUMNS, HISTORY};

/// The statements for one table. The text of each lives as long as the process.
#[derive(Debug)]
pub(super) struct Statements {
    /// Claims by partition, and of one job by its id.
    pub(super) by_partition: Table<Db>,
    pub(super) by_id: Table<Db>,
    pub(super) get: [&'static str; 2],
    pub(super) find: [&'static str; 2],
    pub(super) by_ids: &'static str,
    pub(super) known: &'static str,
    pub(super) insert: &'static str,
    pub(super) take_leaks: &'static str,
    pub(super) write: &'static str,
    pub(super) control: &'static str,
    pub(super) due_partitions: &'static str,
}

impl Statements {
    pub(super) fn of(table: &TableName) -> Self {
        let named = |statement| table.in_statement(statement);
        Self {
            by_partition: BY_PARTITION.named(table),
            by_id: BY_ID.named(table),
            get: [named(GET), of_eight(table, GET)],
            find: [named(FIND), of_eight(table, FIND)],
            by_ids: named(BY_IDS),
            known: named(KNOWN),
            insert: named(INSERT),
            take_leaks: named(TAKE_LEAKS),
            write: table.in_statement(write()),
            control: named(CONTROL),
            due_partitions: named(DUE_PARTITIONS),
        }
    }
}

/// The statement on a table that has the documented columns alone.
fn of_eight(table: &TableName, statement: &'static str) -> &'static str {
    let source = table.in_statement(EIGHT_COLUMNS);
    slipway_durable::database::interned(statement.replace(TableName::PLACEHOLDER, source))
}

/// The columns of a job, as [`rows`](super::rows) reads them.
macro_rules! job_columns {
    () => {
        sql!(
            "id, tenant_id, state, attempts, last_error, metadata, ",
            (as_micros "created_at"),
            " AS created, ",
            (as_micros "updated_at"),
            " AS updated, partition, retry_of, failures, ",
            (as_micros "due_at"),
            " AS due, claimed_by, coalesce(lease_until > ",
            now,
            ", 1 = 0) AS leased, claim_token, claim_token - result_token \
             - CASE WHEN claimed_by IS NULL THEN 0 ELSE 1 END AS lost_claims, made, leaked, history, paused, cancelled, ",
            (as_micros "decommissioned_at"),
            " AS decommissioned"
        )
    };
}

/// A job that is over is never claimed, whoever ended it.
macro_rules! unfinished {
    () => {
        " AND state NOT IN ('ready', 'failed')"
    };
}

const BY_PARTITION: Table<Db> = claimable!("{table}", {
    key: id text,
    by: partition,
    and: unfinished!(),
    returning: job_columns!(),
    release: ", result_token = {table}.claim_token",
});

const BY_ID: Table<Db> = claimable!("{table}", {
    key: id text,
    by: id,
    and: unfinished!(),
    returning: job_columns!(),
    release: ", result_token = {table}.claim_token",
});

const GET: &str = concat!("SELECT ", job_columns!(), " FROM {table} WHERE id = $1");

const FIND: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM {table} WHERE ($1 IS NULL OR state = $1) AND ($2 IS NULL OR tenant_id = $2) \
     AND ($3 IS NULL OR partition = $3) AND ($4 IS NULL OR id > $4) \
     AND ($5 = 0 OR leaked <> '[]') ORDER BY id LIMIT $6"
);

const BY_IDS: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM {table} WHERE id ",
    sql!(picked_from),
    "SELECT given.key FROM ",
    rows_from_json!(key: text),
    sql!(picked_end)
);

/// All jobs that decide about new ones: with their ids, with the ids that they retry, and
/// those of their tenants that are not failed without a trace.
const KNOWN: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM {table} WHERE id ",
    sql!(picked_from),
    "SELECT given.key FROM ",
    rows_from_json!(key: text),
    " UNION SELECT given.retried FROM ",
    rows_from_json!(retried: text),
    " WHERE given.retried IS NOT NULL UNION SELECT jobs.id FROM ",
    rows_from_json!(tenant: text),
    " JOIN {table} AS jobs ON jobs.tenant_id = given.tenant \
     WHERE jobs.state <> 'failed' OR jobs.leaked <> '[]'",
    sql!(picked_end)
);

/// The clock is read once, so that a new job was created when it was updated.
const INSERT: &str = concat!(
    "INSERT INTO {table} (id, tenant_id, metadata, partition, retry_of, made, due_at, \
     created_at, updated_at) SELECT given.key, given.tenant, given.new_metadata, given.part, \
     given.retried, given.new_made, clock.moment, coalesce(",
    sql!((from_micros "given.at")),
    ", clock.moment), coalesce(",
    sql!((from_micros "given.at")),
    ", clock.moment) FROM ",
    rows_from_json!(
        key: text, tenant: text, new_metadata: json, part: text, retried: text, new_made: json,
        at: bigint
    ),
    ", (SELECT ",
    sql!(now),
    " AS moment) AS clock WHERE 1 = 1 ON CONFLICT DO NOTHING RETURNING ",
    job_columns!()
);

/// What failed jobs left behind belongs to their retries from now on.
const TAKE_LEAKS: &str = concat!(
    "UPDATE {table} SET leaked = '[]' WHERE id ",
    sql!(picked_from),
    "SELECT given.retried FROM ",
    rows_from_json!(retried: text),
    sql!(picked_end)
);

/// Writes a set of changes, each only under the claim and in the state that it names. A
/// plain one takes a new token, so that a worker that lost its lease writes no more. The end
/// of a claim is that of `slipway_durable::release_assignments`, for the rows that end theirs.
/// The state is no expression of an index: a plan from the time when the table was small would
/// find all jobs of that state for each change.
fn write() -> &'static str {
    slipway_durable::database::interned(format!("{WRITE_BEFORE}{HISTORY}{WRITE_AFTER}"))
}

const WRITE_BEFORE: &str = "UPDATE {table} SET state = given.to_state, \
     attempts = attempts + given.added, \
     last_error = coalesce(given.new_error, last_error), \
     metadata = coalesce(given.new_metadata, metadata), \
     paused = coalesce(given.new_pause, paused), \
     made = coalesce(given.new_made, made), \
     leaked = coalesce(given.new_leaked, leaked), \
     failures = coalesce(given.new_failures, failures), \
     history = CASE WHEN given.entries IS NULL THEN history ELSE ";

const WRITE_AFTER: &str = concat!(
    " END, updated_at = ",
    sql!(greatest, "(updated_at, coalesce(", (from_micros "given.at"), ", ", now, "))"),
    ", claim_token = claim_token + CASE WHEN given.token IS NULL THEN 1 ELSE 0 END, \
     result_token = CASE WHEN NOT given.is_result THEN result_token \
         ELSE claim_token + CASE WHEN given.token IS NULL THEN 1 ELSE 0 END \
             - CASE WHEN given.released THEN 0 ELSE 1 END END, \
     claimed_by = CASE WHEN given.released THEN NULL ELSE claimed_by END, \
     lease_until = CASE WHEN given.released THEN NULL ELSE lease_until END, \
     due_at = CASE WHEN NOT given.released THEN due_at \
         WHEN given.to_state IN ('ready', 'failed') THEN NULL WHEN wake <> claimed_wake THEN ",
    sql!(now, " ELSE ", now, " + ", given_micros),
    " END FROM ",
    rows_from_json!(
        key: text, token: bigint, from_state: text, to_state: text, added: integer,
        new_metadata: json, new_error: text, new_pause: text, new_made: json,
        new_leaked: json, new_failures: integer, entries: json, released: boolean, is_result: boolean, micros: bigint,
        at: bigint
    ),
    " WHERE id = given.key AND state || '' = given.from_state \
     AND (claim_token = given.token AND claimed_by IS NOT NULL \
         OR given.token IS NULL AND (lease_until IS NULL OR lease_until <= ",
    sql!(now),
    ")) RETURNING ",
    job_columns!()
);

const CONTROL: &str = concat!(
    "UPDATE {table} SET paused = CASE $2 WHEN 'pause' THEN $3 WHEN 'resume' THEN NULL \
         ELSE paused END, \
     cancelled = CASE $2 WHEN 'cancel' THEN $3 ELSE cancelled END, \
     leaked = CASE $2 WHEN 'resolve' THEN '[]' ELSE leaked END, \
     decommissioned_at = CASE $2 WHEN 'decommission' THEN coalesce(decommissioned_at, ",
    sql!(now),
    ") WHEN 'recommission' THEN NULL ELSE decommissioned_at END, ",
    wake_assignments!(),
    " WHERE id = $1 AND ($2 = 'resume' \
         OR $2 IN ('pause', 'cancel') AND state NOT IN ('ready', 'failed') \
         OR $2 IN ('decommission', 'recommission') AND state = 'ready' \
         OR $2 = 'resolve' AND state = 'failed') \
     RETURNING ",
    job_columns!()
);

const DUE_PARTITIONS: &str = concat!(
    "SELECT partition FROM {table} WHERE ",
    due_condition!(),
    unfinished!(),
    " GROUP BY partition ORDER BY min(due_at)"
);
