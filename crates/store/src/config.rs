//! How a store is opened: by URL, with limits.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use slipway_durable::database::{ErrorClass, class};
use sqlx::postgres::PgConnectOptions;

use crate::directory::DirectoryError;
use crate::migration::MigrationError;

/// Where the database is and how much of it to use.
#[derive(Clone)]
pub struct StoreConfig {
    /// `postgres://…` or `sqlite:PATH`, PATH being the file. This process locks
    /// the directory of the file.
    pub url: String,
    /// The size of the pool on PostgreSQL; ignored on SQLite.
    pub max_connections: u32,
    /// How long to try to reach a PostgreSQL server at boot.
    pub connect_limit: Duration,
    /// How long PostgreSQL lets our transaction be idle before it ends it. Our
    /// transactions contain only database work, so an idle one belongs to a
    /// process that was stopped. Its row locks block whoever takes its claims
    /// over, so it must end before the lease does.
    pub idle_transaction_limit: Duration,
    /// How long PostgreSQL may run one statement. No statement of ours takes
    /// seconds, so a longer one means that something is wrong. We give up an
    /// operation a little later, whatever the server does.
    pub statement_limit: Duration,
}

impl StoreConfig {
    /// The given database with the usual limits.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            max_connections: 16,
            connect_limit: Duration::from_secs(30),
            idle_transaction_limit: Duration::from_secs(10),
            statement_limit: slipway_durable::database::STATEMENT_LIMIT,
        }
    }
}

/// The URL may carry a password, so only its scheme is shown.
impl fmt::Debug for StoreConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.url.split(':').next().unwrap_or_default();
        formatter
            .debug_struct("StoreConfig")
            .field("url", &format_args!("{scheme}:…"))
            .field("max_connections", &self.max_connections)
            .field("connect_limit", &self.connect_limit)
            .field("idle_transaction_limit", &self.idle_transaction_limit)
            .field("statement_limit", &self.statement_limit)
            .finish()
    }
}

/// The database that a URL names.
pub(crate) enum Target {
    Sqlite(SqliteFile),
    Postgres(Box<PgConnectOptions>),
}

/// A SQLite file and its size limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SqliteFile {
    pub(crate) path: PathBuf,
    /// The file grows to this many pages of 4096 bytes and no further.
    pub(crate) max_page_count: Option<u32>,
}

impl SqliteFile {
    /// Parses the text after `sqlite:`.
    fn parse(text: &str) -> Result<Self, OpenError> {
        let text = text.strip_prefix("//").unwrap_or(text);
        let (path, query) = text.split_once('?').map_or((text, None), |(p, q)| (p, Some(q)));
        let max_page_count = match query.map(|query| query.split_once('=')) {
            None => None,
            Some(Some(("max_page_count", pages))) => match pages.parse() {
                Ok(pages @ 1..) => Some(pages),
                _ => return Err(OpenError::InvalidUrl),
            },
            Some(_) => return Err(OpenError::InvalidUrl),
        };
        if path.is_empty() || path == ":memory:" {
            return Err(OpenError::InvalidUrl);
        }
        Ok(Self { path: PathBuf::from(path), max_page_count })
    }
}

impl StoreConfig {
    /// Refuses a URL that names no database that the store can use.
    pub fn check(&self) -> Result<(), OpenError> {
        self.target().map(|_| ())
    }

    pub(crate) fn target(&self) -> Result<Target, OpenError> {
        if let Some(path) = self.url.strip_prefix("sqlite:") {
            return SqliteFile::parse(path).map(Target::Sqlite);
        }
        if self.url.starts_with("postgres://") || self.url.starts_with("postgresql://") {
            let options: PgConnectOptions = self.url.parse().map_err(|_| OpenError::InvalidUrl)?;
            let millis = |limit: Duration| format!("{}ms", limit.as_millis().max(1));
            let options = options.options([
                ("idle_in_transaction_session_timeout", millis(self.idle_transaction_limit)),
                ("statement_timeout", millis(self.statement_limit)),
            ]);
            return Ok(Target::Postgres(Box::new(options)));
        }
        Err(OpenError::InvalidUrl)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    // Without the URL on purpose: it may contain a password.
    #[error(
        "the database URL is not understood; use postgres://USER:PASSWORD@HOST:PORT/DATABASE or \
         sqlite:PATH with the path of a file, and ?max_page_count=N after it to bound its size"
    )]
    InvalidUrl,
    #[error("the jobs of tenants cannot be opened: {0}")]
    Jobs(String),
    #[error(
        "the database {server} did not answer within {limit:?}: {source}; check that the server \
         runs and can be reached from here"
    )]
    DatabaseUnreachable { server: String, limit: Duration, source: Box<sqlx::Error> },
    #[error(
        "the database {server} gave {had} of {wanted} connections within {limit:?}: {source}; \
         raise its `max_connections` or the CONNECTION LIMIT of the role, or lower \
         `database_connections` ({wanted} here) of each replica"
    )]
    DatabaseConnectionsExhausted {
        server: String,
        limit: Duration,
        had: usize,
        wanted: u32,
        source: Box<sqlx::Error>,
    },
    #[error(
        "the database is read-only, so it cannot be prepared: {0}; name the primary server, or \
         make it writable"
    )]
    DatabaseReadOnly(#[source] Box<sqlx::Error>),
    #[error("the database is full, so it cannot be prepared: {0}; give it more space")]
    DatabaseFull(#[source] Box<sqlx::Error>),
    #[error(
        "the database {server} refused the connection: {source}; check user, password and name"
    )]
    DatabaseRefused { server: String, source: Box<sqlx::Error> },
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("the SQLite file cannot be opened: {0}; check the path and its permissions")]
    Sqlite(#[source] sqlx::Error),
    #[error(transparent)]
    Migration(MigrationError),
}

/// Tells a read-only or full database apart from a failed migration.
impl From<MigrationError> for OpenError {
    fn from(error: MigrationError) -> Self {
        match error {
            MigrationError::Database(error) => match class(&error) {
                ErrorClass::ReadOnly => Self::DatabaseReadOnly(Box::new(error)),
                ErrorClass::Full => Self::DatabaseFull(Box::new(error)),
                _ => Self::Migration(MigrationError::Database(error)),
            },
            other => Self::Migration(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_one_of_two_databases() {
        let sqlite = StoreConfig::new("sqlite:/data/slipway.db").target();
        assert!(
            matches!(sqlite, Ok(Target::Sqlite(file)) if file.path == std::path::Path::new("/data/slipway.db"))
        );
        let bounded = StoreConfig::new("sqlite:/data/slipway.db?max_page_count=500").target();
        assert!(matches!(bounded, Ok(Target::Sqlite(file)) if file.max_page_count == Some(500)));
        let postgres = StoreConfig::new("postgres://me:secret@db.example:6543/slipway").target();
        assert!(matches!(postgres, Ok(Target::Postgres(options)) if options.get_port() == 6543));
        for url in [
            "",
            "mysql://x",
            "sqlite:",
            "sqlite::memory:",
            "sqlite:x?max_page_count=0",
            "sqlite:x?mode=ro",
            "postgres://me:pw@host:port/x",
        ] {
            assert!(matches!(StoreConfig::new(url).target(), Err(OpenError::InvalidUrl)), "{url}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let config = StoreConfig::new("postgres://me:secret@db.example/slipway");
        assert!(!format!("{config:?}").contains("secret"));
    }

    #[tokio::test]
    async fn an_unreachable_server_is_named_without_the_password() {
        // Port 1 on loopback: nothing listens there.
        let mut config = StoreConfig::new("postgres://me:secret@127.0.0.1:1/slipway");
        config.connect_limit = Duration::from_millis(300);
        let Ok(Target::Postgres(options)) = config.target() else { panic!("a PostgreSQL URL") };
        let (connect, statement) = (config.connect_limit, config.statement_limit);
        let opened = crate::postgres::Backend::open(*options, 2, connect, statement).await;
        let error = opened.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("me@127.0.0.1:1/slipway"), "{text}");
        assert!(!text.contains("secret") && !format!("{error:?}").contains("secret"), "{text}");
    }
}
