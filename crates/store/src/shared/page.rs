//! Reads rows, for every table: one by its key, a page of a list, a count. A
//! row that cannot be read is an error with its id if it is the requested one,
//! and left out of a list, since one bad row must not hide the others.

use std::collections::BTreeMap;

use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::Timestamp;
use slipway_core::error::{ErrorKind, Refusal};
use sqlx::{Database, Row as _};
use uuid::Uuid;

use super::{Connection, Db, Row};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

/// A statement with its parameters.
pub(crate) type Query<'q> = sqlx::query::Query<'q, Db, <Db as Database>::Arguments>;

/// The id, if this text is one; a reference may be a name or an id.
pub(crate) fn as_id(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok()
}

/// A statement whose `$1` is a name and `$2` an id, either of them `reference`.
pub(crate) fn by_reference<'q>(statement: &'static str, reference: &'q str) -> Query<'q> {
    sqlx::query(statement).bind(reference).bind(as_id(reference))
}

/// The row of this statement as its aggregate; an unreadable row is an error with its id.
pub(crate) async fn fetch_one<T>(
    connection: &mut Connection,
    query: Query<'_>,
    id_column: &str,
    read: impl FnOnce(&Row) -> Result<T, Fault>,
) -> Result<Option<T>, Failure> {
    let row = query.fetch_optional(connection).await?;
    row.map(|row| hydrate(&row, id_column, read)).transpose()
}

/// A page of rows in the order of `id_column`, which is also its cursor. An
/// unreadable row is logged and left out, but counts towards the page.
pub(crate) async fn fetch_page<T, C>(
    connection: &mut Connection,
    query: Query<'_>,
    (kind, id_column): (&'static str, &'static str),
    page: Page<C>,
    read: impl Fn(&Row) -> Result<T, Fault>,
) -> Result<Listed<T>, Failure> {
    let found = query.fetch_all(connection).await?;
    Ok(listed(kind, id_column, &page, &found, read))
}

/// A row as its aggregate; an unreadable row is an error with its id.
pub(crate) fn hydrate<T>(
    row: &Row,
    id_column: &str,
    read: impl FnOnce(&Row) -> Result<T, Fault>,
) -> Result<T, Failure> {
    let id: Uuid = row.try_get(id_column)?;
    read(row).map_err(|fault| Failure::Corrupt { id, fault })
}

/// The readable ones of many rows that are no page.
pub(crate) fn readable<T>(
    kind: &'static str,
    rows: &[Row],
    read: impl Fn(&Row) -> Result<T, Fault>,
) -> Vec<T> {
    rows.iter().filter_map(|row| shown(kind, "id", row, &read).1).collect()
}

/// The readable ones of the fetched rows of a page.
pub(crate) fn listed<T, C>(
    kind: &'static str,
    id_column: &'static str,
    page: &Page<C>,
    rows: &[Row],
    read: impl Fn(&Row) -> Result<T, Fault>,
) -> Listed<T> {
    Listed::read(rows.iter().map(|row| shown(kind, id_column, row, &read)), page.limit)
}

/// The id after which a page begins; every id is greater than nil. A test for null beside
/// the comparison was rejected: a generic plan would then walk the index from its front.
pub(crate) fn after<C: Into<Uuid>>(page: Page<C>) -> Uuid {
    page.after.map(Into::into).unwrap_or_default()
}

fn shown<T>(
    kind: &'static str,
    id_column: &'static str,
    row: &Row,
    read: impl Fn(&Row) -> Result<T, Fault>,
) -> (Uuid, Option<T>) {
    let id = row.try_get::<Uuid, _>(id_column).unwrap_or_default();
    (id, or_left_out(kind, id, read(row)))
}

/// What was read; an unreadable row is logged and left out.
pub(crate) fn or_left_out<T>(kind: &'static str, id: Uuid, read: Result<T, Fault>) -> Option<T> {
    let read = read.inspect_err(|fault| {
        tracing::error!(kind, %id, %fault, "a row cannot be read and is left out of a list");
    });
    read.ok()
}

/// The database's clock, read after the locks were granted.
pub(crate) async fn now(connection: &mut Connection) -> Result<Timestamp, sqlx::Error> {
    let row = sqlx::query(sql!("SELECT ", now, " AS now")).fetch_one(connection).await?;
    Ok(row.try_get::<Micros, _>("now")?.into())
}

/// How many rows refer to `$1`.
pub(crate) async fn count(
    connection: &mut Connection,
    statement: &'static str,
    id: Uuid,
) -> Result<i64, sqlx::Error> {
    sqlx::query(statement).bind(id).fetch_one(connection).await?.try_get("found")
}

/// Inserts a row unless its name is taken, and answers the id that the name then has.
pub(crate) async fn ensure(
    connection: &mut Connection,
    insert: Query<'_>,
    find: Query<'_>,
) -> Result<Uuid, sqlx::Error> {
    insert.execute(&mut *connection).await?;
    find.fetch_one(connection).await?.try_get("id")
}

/// The counts of a statement that answers `name` and `found`, by the names that this
/// version knows.
pub(crate) async fn count_by<K: Ord>(
    connection: &mut Connection,
    statement: &'static str,
    parse: impl Fn(&str) -> Option<K>,
) -> Result<BTreeMap<K, u64>, sqlx::Error> {
    let mut counts = BTreeMap::new();
    for row in sqlx::query(statement).fetch_all(connection).await? {
        if let Some(key) = parse(row.try_get("name")?) {
            let found: i64 = row.try_get("found")?;
            counts.insert(key, u64::try_from(found).unwrap_or(0));
        }
    }
    Ok(counts)
}

/// The unique index refused: somebody took the name after it was read as free.
pub(crate) fn taken(field: &str, name: &str) -> Refusal {
    Refusal::new(ErrorKind::NameTaken, format!("`{name}` was taken a moment ago; choose another"))
        .at(field)
}
