//! A PostgreSQL server: one that we started, or an existing one.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::binaries;
use super::watchdog::{Failure, Watchdog};
use crate::ports::free_loopback_port;

/// How to start a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether a commit survives a crash of the machine, as in production. Off
    /// by default: the data is useless after the test, and fsync is most of the
    /// cost of a commit. Benchmarks need it on to mean anything.
    pub durable: bool,
}

/// A server on which tests make their databases. If we started it, it ends on
/// drop, and with this process at the latest.
#[derive(Debug)]
pub struct Postgres {
    url: ServerUrl,
    psql: PathBuf,
    watchdog: Option<Watchdog>,
}

impl Postgres {
    /// Starts a server on a free loopback port; `None` if PostgreSQL is not
    /// installed. Blocks for about two seconds; most tests use
    /// [`super::shared`].
    pub fn start(options: Options) -> anyhow::Result<Option<Self>> {
        let Some(programs) = binaries::find() else {
            return Ok(None);
        };
        // Another process may take a port between choice and use. Three
        // failures in a row are no accident.
        for _ in 0..3 {
            let port = free_loopback_port().context("no free port on 127.0.0.1")?;
            let settings = |folder: &Path| settings(folder, port, options);
            match Watchdog::start(&programs, options.durable, settings) {
                Ok(watchdog) => {
                    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
                    let url = ServerUrl::parse(&url)?;
                    let psql = programs.join("psql");
                    return Ok(Some(Self { url, psql, watchdog: Some(watchdog) }));
                }
                Err(Failure::PortTaken) => {}
                Err(Failure::Other(error)) => return Err(error),
            }
        }
        bail!("PostgreSQL found its port taken three times in a row")
    }

    /// A server that somebody else started and will stop.
    pub fn at(url: &str) -> anyhow::Result<Self> {
        Ok(Self { url: ServerUrl::parse(url)?, psql: binaries::find_psql(), watchdog: None })
    }

    /// The URL of its maintenance database.
    pub fn url(&self) -> &str {
        &self.url.whole
    }

    /// Ends a server that we started, as a power cut would; committed data is
    /// there again after [`Postgres::start_again`]. An error for a server that
    /// somebody else started.
    pub fn crash(&mut self) -> anyhow::Result<()> {
        self.watchdog.as_mut().context("this server is not ours to stop")?.crash()
    }

    /// Starts it again on the same data and port.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        self.watchdog.as_mut().context("this server is not ours to start")?.start_again()
    }

    /// The folder of a server that we started: its data and its `log`. It
    /// appears in the command line of each of its processes.
    pub fn folder(&self) -> Option<&Path> {
        self.watchdog.as_ref().map(Watchdog::folder)
    }

    pub(super) fn url_of_database(&self, name: &str) -> String {
        self.url.with_database(name)
    }

    pub(super) fn psql(&self) -> &Path {
        &self.psql
    }
}

fn settings(folder: &Path, port: u16, options: Options) -> Vec<String> {
    let durable = if options.durable { "on" } else { "off" };
    vec![
        "listen_addresses = '127.0.0.1'".to_owned(),
        format!("port = {port}"),
        format!("unix_socket_directories = '{}'", folder.display()),
        // Several test binaries run at once, each with as many tests as there
        // are cores, and pools of up to ten connections.
        "max_connections = 300".to_owned(),
        format!("fsync = {durable}"),
        // It only protects against torn pages in a crash of the machine.
        format!("full_page_writes = {durable}"),
        // synchronous_commit stays on: without fsync it costs nothing, and a
        // test may kill the server's processes and expect its commits back.
    ]
}

/// A URL, split around the database's name.
#[derive(Debug)]
struct ServerUrl {
    whole: String,
    /// Up to and including the slash before the database's name.
    base: String,
    /// From the question mark on, or empty.
    query: String,
}

impl ServerUrl {
    fn parse(url: &str) -> anyhow::Result<Self> {
        let (place, query) = match url.split_once('?') {
            Some((place, query)) => (place, format!("?{query}")),
            None => (url, String::new()),
        };
        let base = place
            .split_once("://")
            .filter(|(scheme, _)| matches!(*scheme, "postgres" | "postgresql"))
            .and_then(|(_, rest)| rest.rsplit_once('/'))
            .filter(|(_, database)| !database.is_empty())
            .map(|(_, database)| place[..place.len() - database.len()].to_owned());
        // The URL may contain a password, so the message does not repeat it.
        let Some(base) = base else {
            bail!(
                "the URL of the test server is not of the form \
                 postgres://user@host:port/database"
            );
        };
        Ok(Self { whole: url.to_owned(), base, query })
    }

    fn with_database(&self, name: &str) -> String {
        format!("{}{name}{}", self.base, self.query)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Options, ServerUrl, settings};

    #[test]
    fn the_database_of_a_url_is_replaced_and_the_rest_kept() {
        let replaced = |url| ServerUrl::parse(url).unwrap().with_database("other");
        assert_eq!(
            replaced("postgres://postgres@127.0.0.1:5432/postgres"),
            "postgres://postgres@127.0.0.1:5432/other"
        );
        assert_eq!(
            replaced("postgresql://u:p@h/postgres?sslmode=disable"),
            "postgresql://u:p@h/other?sslmode=disable"
        );
    }

    #[test]
    fn a_url_without_database_is_refused_without_repeating_its_password() {
        for url in ["postgres://u:secret@h", "postgres://u:secret@h/", "mysql://h/secret", "x"] {
            let error = ServerUrl::parse(url).unwrap_err().to_string();
            assert!(error.contains("postgres://user@host:port/database"), "{url}: {error}");
            assert!(!error.contains("secret"), "{url}: {error}");
        }
    }

    #[test]
    fn only_a_durable_server_syncs() {
        let fsync = |durable| {
            let lines = settings(Path::new("folder"), 1, Options { durable });
            lines.into_iter().find(|line| line.starts_with("fsync")).unwrap()
        };
        assert_eq!(fsync(true), "fsync = on");
        assert_eq!(fsync(false), "fsync = off");
    }
}
