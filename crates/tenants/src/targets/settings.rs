//! How a profile describes where its tenants live.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::Step;

/// What tenants of one kind have in common. [`Settings::check`] names every fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub engine: Engine,
    /// Where the text is that names the target: the connection string of the provisioner, or
    /// for SQLite the folder of the tenants' files.
    pub target: Reference,
    /// Stands before the name of every schema, file and role. May be empty.
    #[serde(default)]
    pub prefix: String,
    /// A folder of `V<version>__<name>.sql`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrations: Option<PathBuf>,
    /// A folder of `*.sql`, each of which runs once after the migrations, in the order of
    /// their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<PathBuf>,
    /// Who is given the passwords of the roles. PostgreSQL needs it; SQLite has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<SecretSink>,
    /// Programs that run before or after a built-in step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<CommandStep>,
    /// Whether a migration may run although a later version was applied before it.
    #[serde(default)]
    pub allow_out_of_order: bool,
    /// How long a statement waits for a lock before it gives way to the traffic behind it.
    #[serde(default = "defaults::lock_timeout_ms")]
    pub lock_timeout_ms: u32,
    /// How often a file is tried in one call if it does not get its locks.
    #[serde(default = "defaults::lock_attempts")]
    pub lock_attempts: u32,
    /// How long one file may take.
    #[serde(default = "defaults::statement_timeout_seconds")]
    pub statement_timeout_seconds: u32,
    /// Connections to the target at the same time.
    #[serde(default = "defaults::connections")]
    pub connections: u32,
}

/// What a tenant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// A schema with two roles.
    Postgres,
    /// A database file.
    Sqlite,
}

/// Where a secret text is; never the text itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reference {
    /// The content of this file, without the blanks around it.
    File(PathBuf),
    /// The value of this environment variable.
    Environment(String),
    /// A key of a secret in a KV-v2 engine. [`LocalResolver`](super::LocalResolver) has none.
    Kv(KvReference),
}

/// The coordinates of a value in a KV-v2 engine, and how it is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvReference {
    /// Such as `https://vault.example:8200`.
    pub address: String,
    pub mount: String,
    pub path: String,
    pub key: String,
    /// The file with the token that is sent.
    pub token_file: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Certificates in PEM that are trusted instead of the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

impl KvReference {
    /// What is wrong with it: the field, the problem, the remedy.
    fn faults(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let mut faults = Vec::new();
        if let Err((problem, remedy)) = check_address(&self.address) {
            faults.push(("address", problem, remedy));
        }
        let is_path = |text: &str| {
            !text.is_empty() && text.split('/').all(|part| !["", ".", ".."].contains(&part))
        };
        for (field, text) in [("mount", &self.mount), ("path", &self.path)] {
            if !is_path(text) {
                faults.push((field, "is no path", "write it without slashes at its ends"));
            }
        }
        if self.key.is_empty() {
            faults.push(("key", "is empty", "name the entry of the secret"));
        }
        let files = [("token_file", Some(&self.token_file)), ("ca_file", self.ca_file.as_ref())];
        for (field, path) in files {
            if path.is_some_and(|path| !path.is_absolute()) {
                faults.push((field, "is a relative path", "write it from the root on"));
            }
        }
        faults
    }
}

/// Refuses an address to which the token would go in plain text, or that is not what it looks like.
fn check_address(address: &str) -> Result<(), (&'static str, &'static str)> {
    const REMEDY: &str = "begin it with https://; http:// is for this machine alone";
    let url = Url::parse(address).map_err(|_| ("is no URL", REMEDY))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(("has a user or a password", "leave them out: the token is what is sent"));
    }
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => return Err(("names no host", REMEDY)),
    };
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_local => Ok(()),
        _ => Err(("would send the token in plain text", REMEDY)),
    }
}

/// Who is given passwords: a directory or a command, not both.
///
/// It gets one JSON object for each role: `action` (`put`, or `remove` when the role is gone),
/// `tenant`, `schema`, `role` (`migrator` or `runtime`), `user`, `work` and `token`, and
/// with `put` also `password`, `host`, `port` and `database`. A later `put` for a user replaces the
/// earlier one, unless its `(work, token)` is lower: then it comes from a worker that lost its
/// claim, and is refused.
///
/// The directory gets a file `<user>.json` with mode 0600, written whole or not at all. The
/// command gets the object on its standard input, and succeeds by the exit code 0. The
/// password works only after the sink has succeeded, so an error of the sink is always
/// transient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretSink {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The program and its arguments; no shell reads them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    #[serde(default = "defaults::sink_seconds")]
    pub timeout_seconds: u32,
}

/// A program of the user's own beside a built-in step.
///
/// It gets one JSON object on its standard input: `tenant`, `job`, `name`, `step`, `when`
/// (`before` or `after`), `engine` and `schema`. It never gets a secret, and of the environment
/// only `PATH`. Exit code 0 is success, 75 (`EX_TEMPFAIL`) is tried again later, any other fails
/// the step for good. It may run more than once for a job. When its deadline is over, it and
/// all processes of its group are killed, and it is tried again. The first 64 KiB of what it prints
/// are kept; an error shows the end of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandStep {
    pub name: String,
    /// Either this or `after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Step>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Step>,
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    #[serde(default = "defaults::command_seconds")]
    pub deadline_seconds: u32,
}

/// Something wrong with settings: where, what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}: {remedy}")]
pub struct Fault {
    pub field: String,
    pub problem: String,
    pub remedy: String,
}

mod defaults {
    pub(super) const fn lock_timeout_ms() -> u32 {
        2_000
    }
    pub(super) const fn lock_attempts() -> u32 {
        5
    }
    pub(super) const fn statement_timeout_seconds() -> u32 {
        240
    }
    pub(super) const fn connections() -> u32 {
        8
    }
    pub(super) const fn sink_seconds() -> u32 {
        10
    }
    pub(super) const fn command_seconds() -> u32 {
        60
    }
}

/// Longer than any step should take.
const LONGEST_SECONDS: u32 = 24 * 60 * 60;

impl Settings {
    /// Settings with nothing but a target.
    #[must_use]
    pub fn new(engine: Engine, target: Reference) -> Self {
        Self {
            engine,
            target,
            prefix: String::new(),
            migrations: None,
            seeds: None,
            secrets: None,
            steps: Vec::new(),
            allow_out_of_order: false,
            lock_timeout_ms: defaults::lock_timeout_ms(),
            lock_attempts: defaults::lock_attempts(),
            statement_timeout_seconds: defaults::statement_timeout_seconds(),
            connections: defaults::connections(),
        }
    }

    /// Every fault that can be found without the target.
    #[must_use]
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut fault = |field: String, problem: &str, remedy: &str| {
            faults.push(Fault { field, problem: problem.to_owned(), remedy: remedy.to_owned() });
        };
        let letters = self.prefix.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !letters || self.prefix.starts_with(|c: char| c.is_ascii_digit()) {
            let remedy = "use letters, digits and underscores, no digit first";
            fault("prefix".to_owned(), "cannot begin a name", remedy);
        }
        if self.prefix.len() > 40 {
            fault("prefix".to_owned(), "leaves no room for a name", "use 40 letters at most");
        }
        if let Reference::Kv(kv) = &self.target {
            for (field, problem, remedy) in kv.faults() {
                fault(format!("target.kv.{field}"), problem, remedy);
            }
        }
        for (field, path) in [("migrations", &self.migrations), ("seeds", &self.seeds)] {
            if path.as_ref().is_some_and(|path| !path.is_absolute()) {
                fault(field.to_owned(), "is a relative path", "write it from the root on");
            }
        }
        match (&self.secrets, self.engine) {
            (None, Engine::Postgres) => {
                let remedy = "name a directory or a command that is given the passwords";
                fault("secrets".to_owned(), "is missing", remedy);
            }
            (Some(_), Engine::Sqlite) => {
                fault("secrets".to_owned(), "has no use", "a file has no password; leave it out");
            }
            (Some(sink), Engine::Postgres) => {
                match (&sink.directory, &sink.command) {
                    (Some(path), None) if !path.is_absolute() => {
                        let remedy = "write it from the root on";
                        fault("secrets.directory".to_owned(), "is a relative path", remedy);
                    }
                    (None, Some(command)) if !is_command(command) => {
                        let remedy = "name a program by its path or by a name in PATH";
                        fault("secrets.command".to_owned(), "is no program", remedy);
                    }
                    (Some(_), None) | (None, Some(_)) => {}
                    _ => {
                        let remedy = "give either directory or command";
                        fault("secrets".to_owned(), "names none or two sinks", remedy);
                    }
                }
                if !(1..=600).contains(&sink.timeout_seconds) {
                    let field = "secrets.timeout_seconds".to_owned();
                    fault(field, "is out of range", "use 1 to 600");
                }
            }
            (None, Engine::Sqlite) => {}
        }
        let mut names = BTreeSet::new();
        for (n, step) in self.steps.iter().enumerate() {
            let field = |name: &str| format!("steps[{n}].{name}");
            if step.name.is_empty() || step.name.chars().any(char::is_control) {
                fault(field("name"), "is empty or has control characters", "give it a name");
            }
            if !names.insert(step.name.as_str()) {
                fault(field("name"), "stands twice", "give every step a name of its own");
            }
            if step.before.is_some() == step.after.is_some() {
                let remedy = "name the built-in step in either before or after";
                fault(field("before"), "and after are both given or both missing", remedy);
            }
            if !is_command(&step.command) {
                let remedy = "name a program by its path or by a name in PATH";
                fault(field("command"), "is no program", remedy);
            }
            if !(1..=LONGEST_SECONDS).contains(&step.deadline_seconds) {
                fault(field("deadline_seconds"), "is out of range", "use 1 to 86400");
            }
        }
        let ranges = [
            ("lock_timeout_ms", self.lock_timeout_ms, 10..=600_000),
            ("lock_attempts", self.lock_attempts, 1..=100),
            ("statement_timeout_seconds", self.statement_timeout_seconds, 1..=LONGEST_SECONDS),
            ("connections", self.connections, 1..=1_000),
        ];
        for (field, value, range) in ranges {
            if !range.contains(&value) {
                let remedy = format!("use {} to {}", range.start(), range.end());
                fault(field.to_owned(), "is out of range", &remedy);
            }
        }
        faults
    }

    pub(crate) fn lock_timeout(&self) -> Duration {
        Duration::from_millis(self.lock_timeout_ms.into())
    }

    pub(crate) fn statement_timeout(&self) -> Duration {
        Duration::from_secs(self.statement_timeout_seconds.into())
    }
}

fn is_command(command: &[String]) -> bool {
    command.first().is_some_and(|program| !program.is_empty())
        && command.iter().all(|argument| !argument.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> Vec<String> {
        let settings: Settings = serde_json::from_str(json).expect("settings");
        settings.check().into_iter().map(|fault| fault.field).collect()
    }

    #[test]
    fn every_fault_is_named_with_its_field() {
        let fine = r#"{"engine": "postgres", "target": {"environment": "DSN"},
            "secrets": {"directory": "/run/secrets"}, "migrations": "/m",
            "steps": [{"name": "crm", "after": "seed", "command": ["crm"]}]}"#;
        assert_eq!(fields(fine), [""; 0]);
        for (address, is_fine) in [
            ("https://vault.example:8200", true),
            ("http://127.0.0.1:8200", true),
            ("http://127.0.0.1.example", false),
            ("vault.example", false),
            ("http://[::1]:8200/vault", true),
            ("HTTP://localhost", true),
            ("http://127.0.0.1:80@evil.example/", false),
            ("https://user:password@vault.example", false),
            ("http://localhost.evil.example", false),
            ("ftp://localhost", false),
            ("https://", false),
        ] {
            let kv = format!(
                r#"{{"engine": "sqlite", "target": {{"kv": {{"address": "{address}",
                "mount": "kv", "path": "a/b", "key": "dsn", "token_file": "/t"}}}}}}"#
            );
            assert_eq!(fields(&kv).is_empty(), is_fine, "{address}");
        }
        let faulty = r#"{"engine": "postgres", "target": {"kv": {"address": "http://vault.example",
            "mount": "/m", "path": "p/../q", "key": "", "token_file": "t"}}, "prefix": "1;", "migrations": "m", "seeds": "s",
            "secrets": {"directory": "d", "command": [], "timeout_seconds": 0},
            "steps": [{"name": "", "command": [""]},
                {"name": "", "before": "seed", "after": "seed", "command": ["x"],
                 "deadline_seconds": 0}],
            "lock_timeout_ms": 0, "lock_attempts": 0, "statement_timeout_seconds": 0,
            "connections": 0}"#;
        let expected = [
            "prefix",
            "target.kv.address",
            "target.kv.mount",
            "target.kv.path",
            "target.kv.key",
            "target.kv.token_file",
            "migrations",
            "seeds",
            "secrets",
            "secrets.timeout_seconds",
            "steps[0].name",
            "steps[0].before",
            "steps[0].command",
            "steps[1].name",
            "steps[1].name",
            "steps[1].before",
            "steps[1].deadline_seconds",
            "lock_timeout_ms",
            "lock_attempts",
            "statement_timeout_seconds",
            "connections",
        ];
        assert_eq!(fields(faulty), expected);
        assert_eq!(fields(r#"{"engine": "postgres", "target": {"file": "f"}}"#), ["secrets"]);
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let text = r#"{"engine": "sqlite", "target": {"file": "f"}, "migration": "/m"}"#;
        let error = serde_json::from_str::<Settings>(text).unwrap_err().to_string();
        assert!(error.contains("unknown field `migration`"), "{error}");
    }

    #[test]
    fn settings_are_read_as_they_were_written() {
        let target = Reference::Environment("DSN".to_owned());
        let settings = Settings::new(Engine::Postgres, target);
        let text = serde_json::to_string(&settings).expect("JSON");
        assert_eq!(serde_json::from_str::<Settings>(&text).expect("settings"), settings);
    }
}
