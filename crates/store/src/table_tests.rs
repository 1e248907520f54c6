//! Every table of the schema has a row in `docs/operations.md` that says what it holds and
//! what removes its rows. One that nobody thought about fails here.

use std::collections::BTreeSet;

use sqlx::{ConnectOptions as _, Row as _};

use crate::{postgres, sqlite};

/// The tables of the page, each with all of its cells.
fn documented() -> BTreeSet<String> {
    let page = include_str!("../../../docs/operations.md");
    let (_, section) = page.split_once("\n## What grows\n").expect("the section");
    let section = section.split("\n## ").next().expect("its text");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let mut tables = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 4, "{row}");
        assert!(cells.iter().all(|cell| !cell.is_empty()), "{row}");
        let table = cells[0].trim_matches('`').to_owned();
        assert!(tables.insert(table), "twice: {row}");
    }
    tables
}

fn compare(database: &str, found: &BTreeSet<String>) {
    let documented = documented();
    let missing: Vec<_> = found.difference(&documented).collect();
    assert!(
        missing.is_empty(),
        "{database}: say in docs/operations.md what removes the rows of {missing:?}"
    );
    let gone: Vec<_> = documented.difference(found).collect();
    assert!(
        gone.is_empty(),
        "{database}: docs/operations.md has tables that are not there: {gone:?}"
    );
}

#[tokio::test]
async fn what_prunes_every_table_of_sqlite_is_documented() {
    let options = sqlx::sqlite::SqliteConnectOptions::new().in_memory(true);
    let mut connection = options.connect().await.unwrap();
    sqlite::shared::migrate::migrate_up(&mut connection).await.unwrap();
    let tables = sqlx::query(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    );
    let tables = tables.fetch_all(&mut connection).await.unwrap();
    compare("SQLite", &tables.iter().map(|row| row.get("name")).collect());
}

#[tokio::test]
async fn what_prunes_every_table_of_postgres_is_documented() {
    let Some(server) = slipway_testkit::postgres::shared("tables").await else { return };
    let database = server.database("tables").await;
    let options: sqlx::postgres::PgConnectOptions = database.url().parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    postgres::shared::migrate::migrate_up(&mut connection).await.unwrap();
    let tables = sqlx::query(
        "SELECT table_name::text AS name FROM information_schema.tables \
         WHERE table_schema = 'public'",
    );
    let tables = tables.fetch_all(&mut connection).await.unwrap();
    compare("PostgreSQL", &tables.iter().map(|row| row.get("name")).collect());
}
