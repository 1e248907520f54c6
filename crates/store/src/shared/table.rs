//! The rows of a kind, the same for every kind: find one, list them, decide
//! about one, insert, update. A kind says in its own file which statements read
//! it, what a row means and what a decision loads; see [`Table`].

use async_trait::async_trait;
use serde_json::json;
use slipway_app::kind::StoredKind;
use slipway_app::ports::store::{Error, Page, Rule};
use slipway_app::ports::{KindStore, Listed, SubjectOf};
use slipway_core::Refusal;
use slipway_core::deletion::door::{DoorInput, Doored};
use slipway_core::deletion::request::TargetRow;
use slipway_core::deletion::write::Mark;
use slipway_core::ids::{DeletionId, ProjectId, Revision};
use slipway_core::kind::Kind;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::deletion::decide::AtTheDoor;
pub(crate) use super::page::Query;
use super::page::{after, by_reference, count, fetch_one, fetch_page, readable, taken};
use super::row_set::RowSet;
use super::transaction::Load;
use super::{Backend, Connection, Row, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

/// A kind with a table.
pub(crate) trait Table: StoredKind {
    /// The row of a name or an id; something deleted is found by its id only.
    fn fetch_query(reference: &str, show_deleted: bool) -> Query<'_>;

    /// The live row of a name or an id, locked.
    fn lock_query(reference: &str, lock: Lock) -> Query<'_>;

    /// A page of rows, in the order of their ids.
    fn page_query(filter: &Self::Filter, page: Page<Self::Id>) -> Query<'_>;

    /// The live rows whose names are in the JSON parameter `$1`.
    const NAMED: &'static str;

    fn read(row: &Row) -> Result<Self, Fault>;

    /// Locks and loads what a decision about this key reads.
    fn load(
        connection: &mut Connection,
        key: &Self::Key,
    ) -> impl Future<Output = Result<Self::Snapshot, Failure>> + Send;
}

/// Who else may hold the row: nobody, or others that only keep it from changing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lock {
    Update,
    Share,
}

/// The three queries of a kind with a unique name, from its table, the column of its name
/// and its columns. A deletion sets `deleted_at`; the row stays.
macro_rules! queries {
    ($table:literal, $name:literal, $columns:literal) => {
        fn fetch_query(reference: &str, show_deleted: bool) -> table::Query<'_> {
            let statement = concat!(
                select_sql!($table, $columns),
                "(",
                $name,
                " = $1 AND deleted_at IS NULL) OR (id = $2 AND ($3 OR deleted_at IS NULL))"
            );
            table::find(statement, reference).bind(show_deleted)
        }

        fn page_query(filter: &Self::Filter, page: table::PageOf<Self>) -> table::Query<'_> {
            let statement = concat!(
                select_sql!($table, $columns),
                "id > $1 AND ($3 OR deleted_at IS NULL) ORDER BY id LIMIT $2"
            );
            table::first::<Self>(statement, page).bind(filter.0)
        }

        const NAMED: &'static str = concat!(
            select_sql!($table, $columns),
            "deleted_at IS NULL AND ",
            $name,
            " IN (SELECT given.name FROM ",
    rows_from_json!(name: text),
            ")"
        );

        lock_query!(
            $table,
            $columns,
            "(",
            $name,
            " = $1 OR id = $2) AND deleted_at IS NULL ORDER BY id LIMIT 1"
        );
    };
}

/// What deletions do to the rows of a table: `marks!` writes the statements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    find: &'static str,
    lock: &'static str,
    mark: &'static str,
    pub(crate) unmark: &'static str,
    members: &'static str,
    count: &'static str,
    /// Another live row that has the name `$1` where the row `$2` would have it.
    pub(crate) holder: &'static str,
    pub(crate) rename: &'static str,
}

/// From the table, the column of its name, and the column of the project that its rows
/// are or belong to. Where a name is unique among some rows only, a condition selects those
/// of the row `$2`.
macro_rules! marks {
    ($table:literal, $name:literal, $project:literal) => {
        marks!($table, $name, $project, "1 = 1")
    };
    ($table:literal, $name:literal, $project:literal, $among:literal) => {
        table::Marks::new(
            concat!(marked_sql!($table, $name, $project), "WHERE id = $1"),
            concat!(marked_sql!($table, $name, $project), "WHERE id = $1", sql!(for_update)),
            concat!(
                "UPDATE ",
                $table,
                " SET deletion_id = $3, deleted_at = $4, revision = revision + 1, updated_at = ",
                sql!(greatest, "(", now, ", updated_at)"),
                " WHERE id = $1 AND revision = $2"
            ),
            concat!(
                "UPDATE ",
                $table,
                " SET deletion_id = NULL, deleted_at = NULL, revision = revision + 1, \
                 updated_at = ",
                sql!(greatest, "(", now, ", updated_at)"),
                " WHERE id IN (SELECT id FROM ",
                $table,
                " WHERE deletion_id = $1 ORDER BY id",
                sql!(for_update),
                ")"
            ),
            concat!(
                "SELECT id, ",
                $name,
                " AS name FROM ",
                $table,
                " WHERE deletion_id = $1 ORDER BY id LIMIT $2"
            ),
            concat!("SELECT count(*) AS found FROM ", $table, " WHERE deletion_id = $1"),
        )
        .named(
            concat!(
                "SELECT id FROM ",
                $table,
                " WHERE ",
                $name,
                " = $1 AND deleted_at IS NULL AND id <> $2 AND ",
                $among
            ),
            concat!("UPDATE ", $table, " SET ", $name, " = $2 WHERE id = $1"),
        )
    };
}

macro_rules! marked_sql {
    ($table:literal, $name:literal, $project:literal) => {
        concat!(
            "SELECT id, revision, deletion_id, deleted_at, ",
            $name,
            " AS name, ",
            $project,
            " AS project_id FROM ",
            $table,
            " "
        )
    };
}

impl Marks {
    pub(crate) const fn new(
        find: &'static str,
        lock: &'static str,
        mark: &'static str,
        unmark: &'static str,
        members: &'static str,
        count: &'static str,
    ) -> Self {
        Self { find, lock, mark, unmark, members, count, holder: "", rename: "" }
    }

    /// With the statements about names, which a restore needs.
    pub(crate) const fn named(self, holder: &'static str, rename: &'static str) -> Self {
        Self { holder, rename, ..self }
    }

    /// Ids and names of the rows that a deletion marked, `limit` at most, and how many
    /// there are.
    pub(crate) async fn members(
        self,
        connection: &mut Connection,
        id: DeletionId,
        limit: i64,
    ) -> Result<(Vec<(Uuid, String)>, u64), Failure> {
        let query = sqlx::query(self.members).bind(id.as_uuid()).bind(limit);
        let found = query.fetch_all(&mut *connection).await?;
        let named = found.iter().map(|row| Ok((row.try_get("id")?, row.try_get("name")?)));
        let named = named.collect::<Result<_, sqlx::Error>>()?;
        let count = count(connection, self.count, id.as_uuid()).await?;
        Ok((named, u64::try_from(count).unwrap_or_default()))
    }

    /// The row of this id, deleted or not.
    pub(crate) async fn find(
        self,
        connection: &mut Connection,
        id: Uuid,
    ) -> Result<Option<TargetRow>, Failure> {
        fetch_one(connection, sqlx::query(self.find).bind(id), "id", marked).await
    }

    /// The same, locked.
    pub(crate) async fn lock(
        self,
        connection: &mut Connection,
        id: Uuid,
    ) -> Result<Option<TargetRow>, Failure> {
        fetch_one(connection, sqlx::query(self.lock).bind(id), "id", marked).await
    }

    /// Marks a row, unless it was written since it was read.
    pub(crate) async fn mark(
        self,
        connection: &mut Connection,
        mark: &Mark,
        stale: impl FnOnce() -> Refusal,
    ) -> Result<(), Failure> {
        let marked = sqlx::query(self.mark)
            .bind(mark.subject.id)
            .bind(mark.revision.0)
            .bind(mark.deletion_id.map(|id| id.as_uuid()))
            .bind(mark.deleted_at.map(Micros::from))
            .execute(connection)
            .await?;
        writes::one_row(marked.rows_affected(), stale)
    }
}

fn marked(row: &Row) -> Result<TargetRow, Fault> {
    Ok(TargetRow {
        revision: Revision(rows::get(row, "revision")?),
        is_deleted: rows::time_or_null(row, "deleted_at")?.is_some(),
        deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
        name: rows::get(row, "name")?,
        project_id: rows::get::<Option<Uuid>>(row, "project_id")?.map(ProjectId::new),
    })
}

macro_rules! select_sql {
    ($table:literal, $columns:literal) => {
        concat!("SELECT ", $columns, " FROM ", $table, " WHERE ")
    };
}

macro_rules! lock_query {
    ($table:literal, $columns:literal, $($condition:literal),+) => {
        fn lock_query(reference: &str, lock: table::Lock) -> table::Query<'_> {
            let statement = match lock {
                table::Lock::Update => {
                    concat!(select_sql!($table, $columns), $($condition,)+ sql!(for_update))
                }
                table::Lock::Share => {
                    concat!(select_sql!($table, $columns), $($condition,)+ sql!(for_share))
                }
            };
            table::find(statement, reference)
        }
    };
}

/// A page of a list of this kind.
pub(crate) type PageOf<K> = Page<<K as Kind>::Id>;

/// A statement whose `$1` is a name and `$2` an id.
pub(crate) fn find<'q>(statement: &'static str, reference: &'q str) -> Query<'q> {
    by_reference(statement, reference)
}

/// A statement whose `$1` is the id after which a page begins and `$2` its length.
pub(crate) fn first<'q, K: Kind>(statement: &'static str, page: PageOf<K>) -> Query<'q> {
    sqlx::query(statement).bind(after(page)).bind(i64::from(page.limit))
}

#[async_trait]
impl<K: Table> KindStore<K> for Backend {
    async fn fetch(&self, reference: &str, show_deleted: bool) -> Result<Option<K>, Error> {
        self.read((reference, show_deleted), fetch::<K>).await
    }

    async fn page(&self, filter: &K::Filter, page: Page<K::Id>) -> Result<Listed<K>, Error> {
        self.read((filter, page), list::<K>).await
    }

    async fn named(&self, names: &[String]) -> Result<Vec<K>, Error> {
        self.read(names, named::<K>).await
    }

    async fn decide(&self, key: &K::Key, rule: &mut Rule<'_, K::Snapshot>) -> Result<(), Error> {
        self.decided(KeyOf::<K>(key), rule).await
    }

    async fn decide_deletion(
        &self,
        key: &K::Key,
        subject: SubjectOf<K::Snapshot>,
        input: DoorInput,
        rule: &mut Rule<'_, Doored<K::Snapshot>>,
    ) -> Result<(), Error> {
        self.decided(AtTheDoor { of: KeyOf::<K>(key), subject, input }, rule).await
    }
}

async fn fetch<K: Table>(
    connection: &mut Connection,
    (reference, show_deleted): (&str, bool),
) -> Result<Option<K>, Failure> {
    fetch_one(connection, K::fetch_query(reference, show_deleted), "id", K::read).await
}

async fn named<K: Table>(connection: &mut Connection, names: &[String]) -> Result<Vec<K>, Failure> {
    let given: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
    let found = sqlx::query(K::NAMED).bind(Json(given)).fetch_all(connection).await?;
    Ok(readable(K::KIND, &found, K::read))
}

async fn list<K: Table>(
    connection: &mut Connection,
    (filter, page): (&K::Filter, Page<K::Id>),
) -> Result<Listed<K>, Failure> {
    let query = K::page_query(filter, page);
    fetch_page(connection, query, (K::KIND, "id"), page, K::read).await
}

/// The key of a kind, as the key of a decision.
struct KeyOf<'a, K: Table>(&'a K::Key);

impl<K: Table> Load for KeyOf<'_, K> {
    type Snapshot = K::Snapshot;

    async fn load(&self, connection: &mut Connection) -> Result<K::Snapshot, Failure> {
        K::load(connection, self.0).await
    }
}

/// Locks the live row of a reference for a decision that may change it.
pub(crate) async fn lock<K: Table>(
    connection: &mut Connection,
    reference: &str,
) -> Result<Option<K>, Failure> {
    fetch_one(connection, K::lock_query(reference, Lock::Update), "id", K::read).await
}

/// Locks the live row of a reference against change and deletion.
pub(crate) async fn share<K: Table>(
    connection: &mut Connection,
    reference: &str,
) -> Result<Option<K>, Failure> {
    fetch_one(connection, K::lock_query(reference, Lock::Share), "id", K::read).await
}

/// Inserts a row whose name, the column `unique`, the rule found free.
pub(crate) async fn insert<T>(
    connection: &mut Connection,
    rows: &RowSet<T>,
    row: &T,
    unique: &str,
) -> Result<(), Failure> {
    let refusal = |row: &T| taken(unique, (rows.row)(row)[unique].as_str().unwrap_or_default());
    rows.write_guarded(connection, &[row], refusal).await
}

/// Updates the row, unless it was written since it was read.
pub(crate) async fn update<K: Kind>(
    connection: &mut Connection,
    rows: &RowSet<K>,
    row: &K,
) -> Result<(), Failure> {
    rows.write_guarded(connection, &[row], stale).await
}

fn stale<K: Kind>(row: &K) -> Refusal {
    writes::stale(K::KIND, row.id(), row.revision())
}
