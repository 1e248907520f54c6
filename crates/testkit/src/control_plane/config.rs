//! The configuration a control plane process starts with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::ports::lasting_loopback_port;

/// How to start one control plane. Every start uses the same port and the same
/// data directory, so that its agents find it again.
#[derive(Clone, Debug)]
pub struct Config {
    /// The program `slipway`.
    pub program: PathBuf,
    /// Contains the log and the data directory. Canonical: the engine gives
    /// agents canonical paths, and tests find agents in the process table by
    /// those paths.
    pub folder: PathBuf,
    /// Port of 127.0.0.1.
    pub port: u16,
    /// The key of the first administrator.
    pub admin_key: String,
    /// `None` means SQLite in the data directory.
    pub database_url: Option<String>,
    /// `None` means a folder in the data directory.
    pub substrate_root: Option<PathBuf>,
    /// Flags of `slipway up` with their values; a switch has none.
    pub flags: BTreeMap<String, Option<String>>,
    /// Environment variables, in addition to those that [`clean`] keeps.
    pub environment: BTreeMap<String, String>,
}

impl Config {
    /// A control plane in the existing `folder`, on a port of its own.
    pub fn new(program: &Path, folder: &Path, admin_key: &str) -> anyhow::Result<Self> {
        let folder = folder
            .canonicalize()
            .with_context(|| format!("cannot use the folder {}", folder.display()))?;
        Ok(Self {
            program: program.to_owned(),
            folder,
            port: lasting_loopback_port().context("no free port on 127.0.0.1")?,
            admin_key: admin_key.to_owned(),
            database_url: None,
            substrate_root: None,
            flags: BTreeMap::new(),
            environment: BTreeMap::new(),
        })
    }

    /// Adds flags or replaces their values. Takes them as a command line would:
    /// `["--lease", "3s", "--observe-only"]`.
    pub fn set(&mut self, flags: &[&str]) {
        let mut flags = flags.iter().peekable();
        while let Some(flag) = flags.next() {
            let value = flags.next_if(|next| !next.starts_with("--"));
            self.flags.insert((*flag).to_owned(), value.map(|value| (*value).to_owned()));
        }
    }

    /// The URL of its API.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The root of its local engine.
    pub fn substrate_root(&self) -> PathBuf {
        self.substrate_root.clone().unwrap_or_else(|| self.data_dir().join("substrate"))
    }

    /// The file with its standard error, across all restarts.
    pub fn log(&self) -> PathBuf {
        self.folder.join("control-plane.log")
    }

    /// The `slipway up` command with this configuration.
    pub fn command(&self) -> Command {
        let mut command = clean(&self.program);
        command
            .args(["up", "--listen", &format!("127.0.0.1:{}", self.port), "--data-dir"])
            .arg(self.data_dir())
            .arg("--substrate-root")
            .arg(self.substrate_root());
        for (flag, value) in &self.flags {
            command.arg(flag).args(value);
        }
        // Not as arguments: other users of the machine can read those.
        command.env("SLIPWAY_ADMIN_KEY", &self.admin_key);
        // Never the contexts of whoever runs the tests.
        command.env("SLIPWAY_CONFIG_HOME", self.folder.join("config"));
        if let Some(url) = &self.database_url {
            command.env("SLIPWAY_DATABASE_URL", url);
        }
        command.envs(&self.environment);
        command
    }
}

/// A command that inherits neither the environment variables nor the terminal
/// of whoever runs the tests.
pub fn clean(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("RUST_BACKTRACE", "1")
        .stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Config;

    #[test]
    fn a_flag_is_given_once_with_its_last_value() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::new(Path::new("slipway"), folder.path(), "key").unwrap();
        config.set(&["--lease", "9s", "--observe-only"]);
        config.set(&["--lease", "3s"]);
        let command = config.command();
        let arguments: Vec<_> = command.get_args().map(|text| text.to_string_lossy()).collect();
        assert!(arguments.ends_with(&["--lease".into(), "3s".into(), "--observe-only".into()]));
        assert!(!arguments.iter().any(|text| text.contains("key")), "{arguments:?}");
    }
}
