//! The folders of a profile: migrations, seeds, secrets, and the text that names the server.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use slipway_tenants::targets::Settings;

pub(super) struct Folders(tempfile::TempDir);

impl Folders {
    /// Empty folders beside the connection string of this server.
    pub(super) fn new(url: &str) -> anyhow::Result<Self> {
        let folders = Self(tempfile::tempdir()?);
        for name in ["migrations", "seeds"] {
            std::fs::create_dir(folders.path(name))?;
        }
        std::fs::write(folders.path("target"), url)?;
        Ok(folders)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A table with an index, and a row that only one run of the file may add.
    pub(super) fn add_migration(&self, version: usize) -> anyhow::Result<()> {
        let sql = format!(
            "CREATE TABLE part_{version} (id bigint PRIMARY KEY, name text NOT NULL, at timestamptz);
             CREATE INDEX part_{version}_name ON part_{version} (name);
             INSERT INTO part_{version} (id, name) VALUES ({version}, 'first')"
        );
        Ok(std::fs::write(self.path("migrations").join(format!("V{version}__part.sql")), sql)?)
    }

    /// A hundred rows for the table of a migration.
    pub(super) fn add_seed(&self, version: usize) -> anyhow::Result<()> {
        let mut sql = format!("INSERT INTO part_{version} (id, name) VALUES (1000, 'seed')");
        for row in 1..100 {
            write!(sql, ", ({}, 'seed')", 1_000 + row)?;
        }
        Ok(std::fs::write(self.path("seeds").join(format!("{version:02}_part.sql")), sql)?)
    }

    pub(super) fn settings(&self, prefix: &str, connections: u32) -> Value {
        json!({
            "engine": "postgres", "prefix": prefix, "connections": connections,
            "target": { "file": self.path("target") },
            "migrations": self.path("migrations"), "seeds": self.path("seeds"),
            "secrets": { "directory": self.path("secrets") },
        })
    }

    pub(super) fn parsed(&self, prefix: &str, connections: u32) -> anyhow::Result<Settings> {
        Ok(serde_json::from_value(self.settings(prefix, connections))?)
    }
}
