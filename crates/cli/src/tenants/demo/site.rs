//! Where the tenants of the demo are. What one has is read there, without the control plane:
//! from its file, or with the password that the secret sink was given.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use slipway_core::secret::Secret;

use crate::error::Error;
use crate::renderers::Query;

/// Nothing of a tenant is there.
pub(super) const NOTHING: &str = "nothing";
/// Its data is there, and nobody gets at it.
pub(super) const CLOSED: &str = "closed";

const MIGRATIONS: &str = "migrations";
const SEEDS: &str = "seeds";
const WRONG_SEEDS: &str = "wrong-seeds";
/// The seed that fails.
pub(super) const WRONG_SEED: &str = "20_wrong.sql";

const FILES: [(&str, &str, &str); 5] = [
    (MIGRATIONS, "V1__customers.sql", "CREATE TABLE customers (name TEXT NOT NULL PRIMARY KEY);"),
    (MIGRATIONS, "V2__plans.sql", "CREATE TABLE plans (name TEXT NOT NULL PRIMARY KEY);"),
    (SEEDS, "10_plans.sql", "INSERT INTO plans VALUES ('basic'), ('pro');"),
    (WRONG_SEEDS, "10_plans.sql", "INSERT INTO plans VALUES ('basic'), ('pro');"),
    (WRONG_SEEDS, WRONG_SEED, "INSERT INTO no_such_table VALUES (1);"),
];
/// What comes later.
const NEXT: (&str, &str, &str) =
    (MIGRATIONS, "V3__orders.sql", "CREATE TABLE orders (customer TEXT NOT NULL);");

#[derive(Debug)]
pub(super) struct Site {
    folder: PathBuf,
    /// The provisioner's connection; SQLite files if there is none.
    database_url: Option<Secret>,
    prefix: String,
    query: Query,
}

/// What the secret sink was given.
#[derive(Deserialize)]
struct Login {
    user: String,
    password: String,
    host: String,
    port: u16,
    database: String,
}

impl Site {
    pub(super) fn new(
        directory: &Path,
        run: &str,
        database_url: Option<&Secret>,
        query: Query,
    ) -> Self {
        let prefix = format!("{}_", run.replace('-', "_"));
        Self {
            folder: directory.join("tenants"),
            database_url: database_url.cloned(),
            prefix,
            query,
        }
    }

    pub(super) const fn engine(&self) -> &'static str {
        if self.database_url.is_some() { "postgres" } else { "sqlite" }
    }

    /// Migrations, seeds, and the file that names the target.
    pub(super) fn write_files(&self) -> Result<(), Error> {
        for file in FILES {
            self.write_file(file)?;
        }
        let target = match &self.database_url {
            Some(url) => url.expose().to_owned(),
            None => self.folder.join("files").display().to_string(),
        };
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(self.target());
        file.and_then(|mut file| std::io::Write::write_all(&mut file, target.as_bytes()))
            .map_err(|error| Error::Demo(format!("cannot write the target's file: {error}")))
    }

    pub(super) fn write_next(&self) -> Result<(), Error> {
        self.write_file(NEXT)
    }

    fn write_file(&self, (folder, name, text): (&str, &str, &str)) -> Result<(), Error> {
        let folder = self.folder.join(folder);
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join(name), text))
            .map_err(|error| Error::Demo(format!("cannot write {name}: {error}")))
    }

    fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    fn secrets(&self) -> PathBuf {
        self.folder.join("secrets")
    }

    /// The settings of a profile, whose seeds are good or fail.
    pub(super) fn settings(&self, is_wrong: bool) -> Value {
        let mut settings = json!({
            "engine": self.engine(),
            "target": { "file": self.target() },
            "prefix": self.prefix,
            "migrations": self.folder.join(MIGRATIONS),
            "seeds": self.folder.join(if is_wrong { WRONG_SEEDS } else { SEEDS }),
        });
        if self.database_url.is_some() {
            settings["secrets"] = json!({ "directory": self.secrets() });
        }
        settings
    }

    /// What a tenant has, as a line: its tables, its plans and its customers.
    pub(super) async fn content(&self, tenant: &str) -> Result<String, Error> {
        let url = match self.way_to(tenant).await? {
            Way::Open(url) => url,
            Way::Closed => return Ok(CLOSED.to_owned()),
            Way::Nothing => return Ok(NOTHING.to_owned()),
        };
        let mut line = Vec::new();
        for sql in [
            self.tables(),
            "SELECT name FROM plans ORDER BY name",
            "SELECT name FROM customers ORDER BY name",
        ] {
            match (self.query)(url.clone(), sql.to_owned()).await {
                Ok(rows) if rows.is_empty() => line.push("-".to_owned()),
                Ok(rows) => line.push(rows.join(" ")),
                // It may have been closed since its place was read.
                Err(error)
                    if error.contains("not permitted to log in")
                        || matches!(self.way_to(tenant).await?, Way::Closed) =>
                {
                    return Ok(CLOSED.to_owned());
                }
                Err(error) => return Err(Error::Demo(format!("cannot read {tenant}: {error}"))),
            }
        }
        Ok(line.join(" | "))
    }

    /// Adds a customer, as the tenant's application would.
    pub(super) async fn add_customer(&self, tenant: &str, name: &str) -> Result<(), Error> {
        let Way::Open(url) = self.way_to(tenant).await? else {
            return Err(Error::Demo(format!("{tenant} is not there")));
        };
        let sql = format!("INSERT INTO customers VALUES ('{name}')");
        let added = (self.query)(url, sql).await;
        added.map(drop).map_err(|error| Error::Demo(format!("cannot write to {tenant}: {error}")))
    }

    const fn tables(&self) -> &'static str {
        match self.database_url {
            Some(_) => {
                "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() \
                 AND tablename NOT LIKE 'slipway%' ORDER BY 1"
            }
            None => {
                "SELECT name FROM sqlite_master WHERE type = 'table' \
                 AND name NOT LIKE 'slipway%' ORDER BY 1"
            }
        }
    }

    async fn way_to(&self, tenant: &str) -> Result<Way, Error> {
        let name = format!("{}{tenant}", self.prefix);
        if self.database_url.is_none() {
            let files = self.folder.join("files");
            let file = files.join(format!("{name}.db"));
            return Ok(if file.exists() {
                Way::Open(format!("sqlite:{}", file.display()))
            } else if files.join("closed").join(format!("{name}.db")).exists() {
                Way::Closed
            } else {
                Way::Nothing
            });
        }
        if !self.existing().await?.contains(&name) {
            return Ok(Way::Nothing);
        }
        let file = self.secrets().join(format!("{name}_runtime.json"));
        let text = fs::read(&file)
            .map_err(|error| Error::Demo(format!("no password of {tenant}: {error}")))?;
        let Login { user, password, host, port, database } = serde_json::from_slice(&text)
            .map_err(|error| Error::Demo(format!("the password file of {tenant}: {error}")))?;
        Ok(Way::Open(format!("postgres://{user}:{password}@{host}:{port}/{database}")))
    }

    /// Everything of this run on the target: files, or schemas and roles.
    pub(super) async fn left(&self) -> Result<String, Error> {
        let left = self.existing().await?;
        Ok(if left.is_empty() { NOTHING.to_owned() } else { left.join(" ") })
    }

    async fn existing(&self) -> Result<Vec<String>, Error> {
        let Some(url) = &self.database_url else {
            let files = self.folder.join("files");
            let folders = [files.join("closed"), files];
            let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
            let names =
                entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
            return Ok(names.filter(|name| name.starts_with(&self.prefix)).collect());
        };
        let like = self.prefix.replace('_', "\\_");
        let sql = format!(
            "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE '{like}%' \
             UNION SELECT rolname::text FROM pg_roles WHERE rolname LIKE '{like}%' ORDER BY 1"
        );
        (self.query)(url.expose().to_owned(), sql)
            .await
            .map_err(|error| Error::Demo(format!("cannot read the target: {error}")))
    }
}

/// How to get at a tenant's database.
enum Way {
    Open(String),
    Closed,
    Nothing,
}
