//! Compares a tenant's file with the folders, and with a database freshly built in memory.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use sqlx::{Connection as _, SqliteConnection};

use super::{SqliteTarget, files, migrate};
use crate::targets::failure::Failure;
use crate::targets::folder::{self, Migration};
use crate::targets::names::{self, TenantNames};
use crate::targets::plan;
use crate::targets::run::{self, Kind as Row, Run};
use crate::targets::settings::Engine;
use crate::targets::target::{
    Difference, DifferenceKind as Kind, Drift, Fence, NoJournal, Work, structures,
};

/// Columns, indexes, views and triggers.
const STRUCTURE: &str = "SELECT 'column ' || m.name || '.' || c.name, \
         c.type || iif(c.\"notnull\", ' not null', '') || iif(c.pk > 0, ' primary key', '') \
         || coalesce(' default ' || c.dflt_value, '') \
     FROM sqlite_master m, pragma_table_xinfo(m.name) c \
     WHERE m.type IN ('table', 'view') AND substr(m.name, 1, 7) <> 'sqlite_' \
     AND m.name NOT IN ('slipway_tenant', 'slipway_migrations', 'flyway_schema_history') \
     UNION ALL SELECT m.type || ' ' || m.name, m.sql FROM sqlite_master m \
     WHERE m.type IN ('index', 'view', 'trigger') AND m.sql IS NOT NULL \
     AND m.tbl_name NOT IN ('slipway_tenant', 'slipway_migrations', 'flyway_schema_history')";

impl SqliteTarget {
    pub(super) async fn compare(&self, names: &TenantNames, deep: bool) -> Result<Drift, Failure> {
        let migrations = folder::migrations(self.settings.migrations.as_deref()).await?;
        let seeds = folder::seeds(self.settings.seeds.as_deref()).await?;
        let (path, object) = (self.path(names), names::file(&names.file()));
        let mut drift = Drift::default();
        let mut differ = |kind, object: &str, expected: &str, found: &str| {
            let (object, expected) = (object.to_owned(), expected.to_owned());
            drift.differences.push(Difference { kind, object, expected, found: found.to_owned() });
        };
        let Ok(metadata) = path.metadata() else {
            differ(Kind::Object, &object, "there", "not there, or closed");
            return Ok(drift);
        };
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            differ(Kind::Grant, &object, "mode 600", &format!("mode {mode:o}"));
        }
        let mut connection = self.open(names).await?;
        let applied = migrate::rows(&mut connection, Row::Migration).await?;
        let seeded = migrate::rows(&mut connection, Row::Seed).await?;
        let ours = structure(&mut connection).await?;
        connection.close().await?;
        for (object, expected, found) in plan::differences(&migrations, &applied, &seeds, &seeded) {
            differ(Kind::Ledger, &object, expected, found);
        }
        if deep {
            let fresh = self.fresh_structure(&migrations).await?;
            drift.differences.extend(structures(&fresh, &ours));
        }
        Ok(drift)
    }

    async fn fresh_structure(
        &self,
        folder: &[Migration],
    ) -> Result<BTreeMap<String, String>, Failure> {
        let names = TenantNames::temporary(Engine::Sqlite, "memory");
        let work = Work { names: &names, fence: Fence::default(), lost: None, journal: &NoJournal };
        let mut connection = SqliteConnection::connect("sqlite::memory:").await?;
        sqlx::raw_sql(files::TABLES).execute(&mut connection).await?;
        let insert = "INSERT INTO slipway_tenant VALUES (1, $1, 0, 0)";
        sqlx::query(insert).bind(names.owner()).execute(&mut connection).await?;
        let mut tenant = migrate::Tenant { connection, work: &work, settings: &self.settings };
        let in_any_order = self.settings.allow_out_of_order;
        run::migrate(&mut tenant, folder, in_any_order, &mut Run::default()).await?;
        structure(&mut tenant.connection).await
    }
}

async fn structure(connection: &mut SqliteConnection) -> Result<BTreeMap<String, String>, Failure> {
    let rows: Vec<(String, String)> = sqlx::query_as(STRUCTURE).fetch_all(connection).await?;
    Ok(rows.into_iter().collect())
}
