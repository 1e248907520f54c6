//! Copies of a tenant's data, read back by the tools of the engines.

use std::process::Command;
use std::time::Duration;

use slipway_tenants::targets::{Export, ExportFormat};
use slipway_testkit::{postgres, wait};
use sqlx::{Connection as _, PgConnection, SqliteConnection};

use super::both::made;
use super::site::{Site, sites, sqlite, work};

const TIMEOUT: Duration = Duration::from_secs(60);

const ORDERS: &str = "SELECT count(*) FROM orders";

async fn read(mut export: Export) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(piece) = export.piece().await.expect("a piece") {
        all.extend(piece);
    }
    all
}

/// The orders that a copy has, in a database of its own.
async fn orders(site: &Site, format: ExportFormat, copy: &[u8]) -> i64 {
    let file = site.folder.path().join("copy");
    std::fs::write(&file, copy).expect("a file");
    match format {
        ExportFormat::SqliteDatabase => {
            let mut copy =
                SqliteConnection::connect(&file.to_string_lossy()).await.expect("a copy");
            sqlx::query_scalar(ORDERS).fetch_one(&mut copy).await.expect("a number")
        }
        ExportFormat::PostgresArchive => {
            let server = postgres::shared("restored_copy").await.expect("the same server");
            let empty = server.database("restored_copy").await;
            let mut command = Command::new("pg_restore");
            command.args(["--exit-on-error", "--no-owner", &format!("--dbname={}", empty.url())]);
            let done = command.arg(&file).output().expect("pg_restore");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            let mut copy = PgConnection::connect(empty.url()).await.expect("a copy");
            let schema = site.names("acme").schema().to_owned();
            let sql = format!("SET search_path = \"{schema}\"");
            sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut copy).await.expect("a schema");
            sqlx::query_scalar(ORDERS).fetch_one(&mut copy).await.expect("a number")
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_has_all_rows_open_or_closed() {
    for site in sites("export").await {
        site.usual_files();
        let notes = made(&site, "acme").await;
        let (target, names) = (site.target().await, site.names("acme"));
        let before = site.objects("acme").await;
        let export = target.export(&names).await.expect("a copy");
        let format = export.format();
        assert_eq!(orders(&site, format, &read(export).await).await, 1);
        // Two at a time, one of which nobody reads to its end.
        let (one, other) = tokio::join!(target.export(&names), target.export(&names));
        drop(one.expect("a copy"));
        assert_eq!(orders(&site, format, &read(other.expect("a copy")).await).await, 1);
        target.migrate(&work(&names, (2, 1), &notes)).await.expect("nothing was changed");
        target.close(&work(&names, (2, 2), &notes)).await.expect("closed");
        let closed = target.export(&names).await.expect("a copy");
        assert_eq!(orders(&site, format, &read(closed).await).await, 1);
        target.reopen(&work(&names, (2, 3), &notes)).await.expect("open");
        assert_eq!(site.objects("acme").await, before);
        if site.database.is_some() {
            let members = "SELECT count(*) FROM pg_auth_members WHERE NOT admin_option AND roleid = \
                           (SELECT oid FROM pg_roles WHERE rolname = current_schema() || '_migrator')";
            assert_eq!(site.number("acme", members).await, 0, "the role was given back");
        }
        if format == ExportFormat::SqliteDatabase {
            let file = site.file("acme");
            let files = std::fs::read_dir(file.parent().unwrap()).expect("the folder").flatten();
            let mut files: Vec<_> = files.map(|entry| entry.file_name()).collect();
            files.sort();
            assert_eq!(files, [".slipway", "acme.db", "closed"], "nothing is beside it");
        }

        let stranger = target.export(&site.names("stranger")).await.unwrap_err();
        assert!(!stranger.is_transient() && stranger.message.contains("stranger"), "{stranger:?}");
        target.destroy(&work(&names, (3, 1), &notes)).await.expect("gone");
        target.export(&names).await.expect_err("nothing is left to copy");
    }
}

/// A copy that nobody waits for any more has all data of the tenant: it is given up and removed, and
/// until then nobody else has the tenant.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_nobody_waits_for_leaves_no_file() {
    let site = sqlite();
    site.usual_files();
    let _notes = made(&site, "acme").await;
    let (target, names) = (site.target().await, site.names("acme"));
    let fill = "WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) \
                INSERT INTO orders SELECT i, hex(randomblob(64)) FROM n";
    site.numbers("acme", fill).await;
    let copy = site.file("acme").with_file_name(".acme.db.copy");
    let begun = wait::until(TIMEOUT, "the copy to begin", async || copy.exists());
    tokio::select! {
        biased;
        () = begun => {}
        export = target.export(&names) => panic!("it was too fast: {export:?}"),
    }
    wait::until(TIMEOUT, "the copy to be given up", async || !copy.exists()).await;
    let export = target.export(&names).await.expect("the lock is free again");
    assert_eq!(orders(&site, export.format(), &read(export).await).await, 299_992);
}
