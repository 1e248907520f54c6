//! A database for one test.
//!
//! Statements go through `psql`. A connection pool would be bound to the
//! runtime of the first test and die with it, and a destructor cannot await; a
//! short-lived process has neither problem, and keeps a database driver out of
//! the build of `cargo xtask`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, bail};

use super::server::Postgres;
use crate::process::Spawned;

/// PostgreSQL truncates names at 63 bytes; a hint of this length leaves room
/// for a process id (at most 7 digits) and a counter.
const LONGEST_HINT: usize = 40;

/// A fresh database. Drop removes it and ends the connections to it.
#[derive(Debug)]
pub struct TestDatabase {
    url: String,
    name: String,
    server_url: String,
    psql: PathBuf,
}

impl TestDatabase {
    /// The URL to connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs statements one after the other as the server's superuser, each in
    /// its own transaction.
    ///
    /// # Panics
    /// When a statement fails.
    pub async fn execute(&self, statements: &[&str]) {
        let (psql, url) = (self.psql.clone(), self.url.clone());
        let statements: Vec<String> = statements.iter().map(|&text| text.to_owned()).collect();
        let done = tokio::task::spawn_blocking(move || {
            let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
            run(&psql, &url, &statements)
        });
        if let Err(error) = done.await.context("the thread that runs psql panicked").flatten() {
            panic!("cannot prepare the database {}: {error:#}", self.name);
        }
    }

    /// Ends every other connection to this database.
    pub async fn end_connections(&self) {
        let statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                         WHERE datname = current_database() AND pid <> pg_backend_pid()";
        self.execute(&[statement]).await;
    }

    /// Locks a table exclusively for as long as the returned guard lives.
    ///
    /// # Panics
    /// When the lock is not acquired within twenty seconds.
    pub async fn hold_lock(&self, table: &str) -> Spawned {
        let mut command = psql(&self.psql, &self.url);
        command
            .args(["--tuples-only", "--command"])
            .arg(format!(
                "SET client_connection_check_interval = '50ms'; \
                 BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE; SELECT 'held'; \
                 SELECT pg_sleep(600)"
            ))
            .stdout(Stdio::null());
        let held = Spawned::start(&mut command).unwrap_or_else(|error| panic!("{error:#}"));
        self.wait_until(&format!(
            "EXISTS (SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted \
                AND relation = '{table}'::regclass)"
        ))
        .await;
        held
    }

    /// Waits until this condition holds, an expression of SQL.
    ///
    /// # Panics
    /// When that takes longer than twenty seconds.
    pub async fn wait_until(&self, condition: &str) {
        // Statistics of a transaction are those of its first look at them.
        let asked = format!(
            "DO $$ BEGIN FOR i IN 1..2000 LOOP PERFORM pg_stat_clear_snapshot(); \
             IF {condition} THEN RETURN; END IF; \
             PERFORM pg_sleep(0.01); END LOOP; RAISE 'it did not come to that'; END $$"
        );
        self.execute(&[&asked]).await;
    }

    /// Waits until a connection of the control plane to this database is in this
    /// state, a condition on `pg_stat_activity`.
    ///
    /// # Panics
    /// When that takes longer than twenty seconds.
    pub async fn wait_for_connection(&self, state: &str) {
        self.wait_until(&format!(
            "EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() \
             AND application_name = 'slipway' AND {state})"
        ))
        .await;
    }

    /// Makes a role named like the database its owner, because the server
    /// applies limits to a role but none to a superuser. Returns the URL to
    /// connect with as that role.
    pub async fn give_to_a_role(&self) -> String {
        let name = &self.name;
        self.execute(&[
            &format!("DROP ROLE IF EXISTS {name}"),
            &format!("CREATE ROLE {name} LOGIN"),
            &format!("ALTER DATABASE {name} OWNER TO {name}"),
        ])
        .await;
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        format!("{scheme}://{name}@{host}")
    }

    /// Its name on the server, for [`Postgres::database_from_template`].
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let role = format!("DROP ROLE IF EXISTS {}", self.name);
        // The server, and the database with it, may be gone already.
        let _dropped = run(&self.psql, &self.server_url, &[&statement, &role]);
    }
}

impl Postgres {
    /// A fresh, empty database. `hint`, preferably the test's name, becomes
    /// part of its name.
    ///
    /// # Panics
    /// When the server cannot create it.
    pub async fn database(&self, hint: &str) -> TestDatabase {
        self.create(hint, None).await
    }

    /// A fresh copy of the database named `template`: much faster than
    /// migrating an empty one again.
    ///
    /// # Panics
    /// When the server cannot create it, for instance because somebody is still
    /// connected to the template. PostgreSQL waits five seconds for such
    /// connections to end.
    pub async fn database_from_template(&self, hint: &str, template: &str) -> TestDatabase {
        self.create(hint, Some(template)).await
    }

    async fn create(&self, hint: &str, template: Option<&str>) -> TestDatabase {
        let name = unique_name(hint);
        // A killed process may have left a database of this name, if its
        // process id is in use again.
        let make_room = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        let create = match template {
            Some(template) => format!("CREATE DATABASE {name} TEMPLATE {}", quoted(template)),
            None => format!("CREATE DATABASE {name}"),
        };
        let (psql, server_url) = (self.psql().to_owned(), self.url().to_owned());
        let created =
            tokio::task::spawn_blocking(move || run(&psql, &server_url, &[&make_room, &create]))
                .await
                .context("the thread that runs psql panicked")
                .flatten();
        if let Err(error) = created {
            panic!("cannot make the database {name}: {error:#}");
        }
        TestDatabase {
            url: self.url_of_database(&name),
            name,
            server_url: self.url().to_owned(),
            psql: self.psql().to_owned(),
        }
    }
}

/// A non-interactive `psql` without the user's settings.
fn psql(program: &Path, url: &str) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--no-psqlrc", "--quiet", "--no-password", "--set=ON_ERROR_STOP=1"])
        .arg(format!("--dbname={url}"))
        .env("PGCONNECT_TIMEOUT", "10")
        // Suppresses the notice "does not exist, skipping".
        .env("PGOPTIONS", "-c client_min_messages=warning")
        .stdin(Stdio::null());
    command
}

/// Runs statements one after the other, each in its own transaction.
fn run(program: &Path, url: &str, statements: &[&str]) -> anyhow::Result<()> {
    let mut command = psql(program, url);
    for statement in statements {
        command.arg(format!("--command={statement}"));
    }
    let answer = command.output().with_context(|| {
        format!("cannot run {} (apt-get install postgresql-client)", program.display())
    })?;
    if !answer.status.success() {
        bail!("{}", String::from_utf8_lossy(&answer.stderr).trim());
    }
    Ok(())
}

/// A name that no concurrent test uses. It has only letters, digits and
/// underscores, so it needs no quoting.
fn unique_name(hint: &str) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let hint: String = hint
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .take(LONGEST_HINT)
        .collect();
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("test_{hint}_{}_{number}", std::process::id())
}

fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::{quoted, unique_name};

    #[test]
    fn names_are_unique_plain_and_short_enough() {
        let hint = "Store::Shared tests; DROP".repeat(5);
        let (first, second) = (unique_name(&hint), unique_name(&hint));
        assert_ne!(first, second);
        for name in [first, second] {
            assert!(name.len() <= 63, "{name} would be cut by the server");
            assert!(name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_')), "{name}");
        }
    }

    #[test]
    fn a_template_name_cannot_end_its_quotes() {
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
