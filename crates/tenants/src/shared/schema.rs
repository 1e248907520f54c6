//! The table: made, upgraded, and left alone if it is complete.

use slipway_durable::database::{End, TableName};
use sqlx::{AssertSqlSafe, Row as _};

use super::{
    AFTER_UPGRADE, CATALOG_NAME, COLUMNS_OF, Connection, EIGHT, EXTRA, INDEXES_OF, Store,
    TABLE_OPTIONS, lock_table,
};
use crate::Error;
use crate::failure::Failure;

/// Of each index the end of its name, and the statement.
const INDEXES: [(&str, &str); 4] = [
    ("tenant", "CREATE INDEX IF NOT EXISTS idx_{part}_tenant ON {table} (tenant_id)"),
    ("state", "CREATE INDEX IF NOT EXISTS idx_{part}_state ON {table} (state)"),
    (
        "active",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_{part}_active ON {table} (tenant_id) \
         WHERE state NOT IN ('ready', 'failed')",
    ),
    (
        "due",
        "CREATE INDEX IF NOT EXISTS idx_{part}_due ON {table} (partition, due_at, id) \
         WHERE due_at IS NOT NULL AND state NOT IN ('ready', 'failed')",
    ),
];

const SEVERAL: &str = "SELECT tenant_id FROM {table} WHERE state NOT IN ('ready', 'failed') \
     GROUP BY tenant_id HAVING count(*) > 1 LIMIT 1";

/// Nobody knows which claims of the time before the column were lost.
const FORGET_CLAIMS: &str = "UPDATE {table} SET result_token = claim_token WHERE claim_token > 0";

impl Store {
    /// The statement that makes the whole table, for those who manage their schema by other
    /// means; see also [`Store::indexes`].
    pub fn ddl(table: &str) -> Result<String, Error> {
        let table = Self::table_name(table)?;
        let extra = EXTRA.map(|(name, kind, default)| {
            let default = if name == "due_at" { concat!("(", sql!(now), ")") } else { default };
            format!(",\n    {name} {kind} DEFAULT {default}")
        });
        let columns = format!("{EIGHT}{}", extra.concat());
        let made =
            format!("CREATE TABLE IF NOT EXISTS {{table}} (\n    {columns}\n){TABLE_OPTIONS}");
        Ok(table.in_statement(&made).to_owned())
    }

    /// The statements that make the indexes.
    pub fn indexes(table: &str) -> Result<Vec<String>, Error> {
        let table = Self::table_name(table)?;
        Ok(INDEXES.map(|(_, index)| table.in_statement(index).to_owned()).to_vec())
    }
}

pub(super) async fn is_complete(
    connection: &mut Connection,
    table: &TableName,
) -> Result<bool, Failure> {
    let missing = missing(connection, table).await?;
    Ok(missing.columns.is_empty() && missing.indexes.is_empty())
}

/// What a table lacks; all columns if there is no table.
struct Missing {
    has_table: bool,
    columns: Vec<&'static (&'static str, &'static str, &'static str)>,
    indexes: Vec<&'static str>,
}

async fn missing(connection: &mut Connection, table: &TableName) -> Result<Missing, Failure> {
    let columns = names(connection, COLUMNS_OF, table).await?;
    let indexes = names(connection, INDEXES_OF, table).await?;
    let lacks = |index: &&(&str, &str)| {
        let name = format!("idx_{}_{}", table.table(), index.0);
        !indexes.contains(&name)
    };
    Ok(Missing {
        has_table: !columns.is_empty(),
        columns: EXTRA.iter().filter(|(name, ..)| !columns.iter().any(|has| has == name)).collect(),
        indexes: INDEXES.iter().filter(lacks).map(|(_, index)| *index).collect(),
    })
}

async fn names(
    connection: &mut Connection,
    statement: &'static str,
    table: &TableName,
) -> Result<Vec<String>, Failure> {
    let name = table.in_statement(CATALOG_NAME);
    let rows = sqlx::query(statement).bind(name).fetch_all(connection).await?;
    Ok(rows.iter().map(|row| row.try_get("name")).collect::<Result<_, _>>()?)
}

/// Makes what is missing, under a lock: "if not exists" alone fails when two do it at once.
/// A complete table is not touched, since even an index that exists already would wait for
/// every writer.
pub(super) async fn create(connection: &mut Connection, store: &Store) -> Result<End<()>, Failure> {
    let table = &store.table;
    lock_table(connection, table).await?;
    let mut missing = missing(connection, table).await?;
    if missing.has_table {
        for (name, kind, default) in &missing.columns {
            let add = format!("ALTER TABLE {{table}} ADD COLUMN {name} {kind} DEFAULT {default}");
            run(connection, table.in_statement(&add)).await?;
        }
        let is_new = |column| missing.columns.iter().any(|(name, ..)| *name == column);
        if let Some(after) = AFTER_UPGRADE.filter(|_| is_new("due_at")) {
            run(connection, table.in_statement(after)).await?;
        }
        if is_new("result_token") && !is_new("claim_token") {
            run(connection, table.in_statement(FORGET_CLAIMS)).await?;
        }
    } else {
        let made = Store::ddl(&table.to_string())?;
        sqlx::query(AssertSqlSafe(made)).execute(&mut *connection).await?;
        missing.indexes = INDEXES.iter().map(|(_, index)| *index).collect();
    }
    if missing.indexes.iter().any(|index| index.contains("UNIQUE")) {
        let several = sqlx::query(table.in_statement(SEVERAL)).fetch_optional(&mut *connection);
        if let Some(row) = several.await? {
            let tenant = row.try_get("tenant_id")?;
            return Err(Error::SeveralUnfinished { tenant }.into());
        }
    }
    for index in missing.indexes {
        run(connection, table.in_statement(index)).await?;
    }
    Ok(End::Commit(()))
}

async fn run(connection: &mut Connection, statement: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(statement).execute(connection).await?;
    Ok(())
}
