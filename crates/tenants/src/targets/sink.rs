//! Hands passwords to the sink of the settings.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::command::Printed;
use super::names::TenantNames;
use super::secret::Secret;
use super::settings::SecretSink;
use super::target::Fence;
use super::{command, files, password};
use crate::StepError;

/// One of the two roles of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Migrator,
    Runtime,
}

impl Role {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Migrator => "migrator",
            Self::Runtime => "runtime",
        }
    }

    pub(crate) fn name(self, names: &TenantNames) -> String {
        match self {
            Self::Migrator => names.migrator(),
            Self::Runtime => names.runtime(),
        }
    }
}

/// Where a role logs in.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: String,
}

/// Where passwords go.
#[derive(Debug, Clone)]
pub(crate) struct Sink {
    sink: SecretSink,
    server: Server,
}

impl Sink {
    pub(crate) fn new(sink: SecretSink, server: Server) -> Self {
        Self { sink, server }
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.sink.timeout_seconds.into())
    }

    /// Hands over the password of a role. It is durable there when this returns.
    pub(crate) async fn put(
        &self,
        names: &TenantNames,
        role: Role,
        fence: Fence,
        password: &Secret,
    ) -> Result<(), StepError> {
        let mut entry = entry("put", names, role, fence);
        entry["password"] = password.expose().into();
        entry["host"] = self.server.host.as_str().into();
        entry["port"] = self.server.port.into();
        entry["database"] = self.server.database.as_str().into();
        self.hand_over(&role.name(names), fence, &entry).await
    }

    /// Says that a role is gone, and its password with it.
    pub(crate) async fn remove(
        &self,
        names: &TenantNames,
        role: Role,
        fence: Fence,
    ) -> Result<(), StepError> {
        let entry = entry("remove", names, role, fence);
        self.hand_over(&role.name(names), fence, &entry).await
    }

    /// Whatever goes wrong with a sink, the tenant is not harmed by it and a person can help.
    async fn hand_over(&self, user: &str, fence: Fence, entry: &Value) -> Result<(), StepError> {
        let done = match (&self.sink.directory, &self.sink.command) {
            (Some(directory), _) => {
                let (path, entry) = (directory.join(format!("{user}.json")), entry.clone());
                let random = password::random_name()?;
                let write =
                    tokio::task::spawn_blocking(move || store(&path, fence, &entry, &random));
                // A folder on a server that does not answer blocks for ever.
                match timeout(self.timeout(), write).await {
                    Ok(Ok(written)) => written,
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(_) => Err(format!("took longer than {:?}", self.timeout())),
                }
            }
            (None, Some(command)) => {
                let input = entry.to_string();
                let limit = self.timeout();
                let run =
                    command::run("its command", command, input.as_bytes(), limit, Printed::Hidden);
                run.await.map_err(|error| error.message)
            }
            (None, None) => Err("the settings name none".to_owned()),
        };
        let failed = |problem| format!("the secret sink did not take {user}: {problem}");
        done.map_err(|problem| StepError::transient(failed(problem)))
    }
}

fn entry(action: &str, names: &TenantNames, role: Role, fence: Fence) -> Value {
    json!({
        "action": action,
        "tenant": names.tenant(),
        "schema": names.schema(),
        "role": role.as_str(),
        "user": role.name(names),
        "work": fence.work,
        "token": fence.token,
    })
}

/// The caller holds the tenant's row of the ledger meanwhile. The comparison is for one that was
/// paused for so long that the server took the row from it.
fn store(path: &Path, fence: Fence, entry: &Value, random: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if stored_fence(path).is_some_and(|stored| stored > fence) {
        return Err("a later worker was there before".to_owned());
    }
    if entry["action"] == "remove" {
        return files::remove(path).map_err(failed);
    }
    files::create_folder(path.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
    files::write_private(path, entry.to_string().as_bytes(), random).map_err(failed)
}

fn stored_fence(path: &Path) -> Option<Fence> {
    let stored: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    Some(Fence { work: stored["work"].as_i64()?, token: stored["token"].as_i64()? })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::targets::{Engine, Reference, Settings};

    const FENCE: Fence = Fence { work: 1, token: 2 };

    fn mk_names() -> TenantNames {
        let target = Reference::Environment("DSN".to_owned());
        TenantNames::of(&Settings::new(Engine::Postgres, target), "acme").expect("names")
    }

    fn mk_sink(directory: Option<&Path>, command: Option<&str>) -> Sink {
        let command = command.map(|script| ["/bin/sh", "-c", script].map(str::to_owned).to_vec());
        let directory = directory.map(Path::to_owned);
        let server = Server { host: "db".to_owned(), port: 5_432, database: "x".to_owned() };
        Sink::new(SecretSink { directory, command, timeout_seconds: 1 }, server)
    }

    async fn put(sink: &Sink, fence: Fence) -> Result<(), StepError> {
        sink.put(&mk_names(), Role::Runtime, fence, &Secret::new("hunter2")).await
    }

    #[tokio::test]
    async fn a_file_is_private_and_a_late_worker_leaves_it_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let sink = mk_sink(Some(&folder.path().join("secrets")), None);
        put(&sink, FENCE).await.expect("written");
        let path = folder.path().join("secrets/acme_runtime.json");
        let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().expect("one"))), (0o600, 0o700));
        let text = std::fs::read_to_string(&path).expect("text");
        let entry: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            (&entry["user"], &entry["password"]),
            (&json!("acme_runtime"), &json!("hunter2"))
        );
        let late = put(&sink, Fence { token: 1, ..FENCE }).await.unwrap_err();
        assert!(late.is_transient() && late.message.contains("a later worker"), "{late:?}");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), text);
        sink.remove(&mk_names(), Role::Runtime, FENCE).await.expect("removed");
        let left = std::fs::read_dir(folder.path().join("secrets")).expect("a folder").count();
        assert_eq!(left, 0);
    }

    #[tokio::test]
    async fn a_sink_that_fails_or_hangs_is_transient_and_shows_no_password() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("a file");
        for sink in [
            mk_sink(None, Some("cat; exit 1")),
            mk_sink(None, Some("sleep 600")),
            mk_sink(None, Some("/no/such/program")),
            mk_sink(Some(&file), None),
        ] {
            let error = put(&sink, FENCE).await.unwrap_err();
            assert!(error.is_transient(), "{error:?}");
            assert!(!error.message.contains("hunter2"), "{error:?}");
        }
        let fine = mk_sink(None, Some("grep -q '\"password\":\"hunter2\"'"));
        assert_eq!(put(&fine, FENCE).await, Ok(()));
    }
}
