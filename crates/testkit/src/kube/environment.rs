//! One Kubernetes API with all of its servers and files.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::Instant;

use super::audit::{AuditLog, AuditRecord};
use super::binaries::{self, Binaries};
use super::certificates::Certificates;
use super::parts::{self, Part, Ports, file};
use super::readiness::{self, Readiness};
use super::users::{self, ADMIN, Credentials, OTHER_ADMIN, User};
use super::watchdog::Watchdog;
use crate::ports::lasting_loopback_port;
use crate::process;

/// About five seconds on an idle machine; the rest is for a busy one.
const TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);

/// Paths that must answer 200: an API server reports ready before it has made
/// its first namespaces.
const NEEDED: [&str; 3] =
    ["/readyz", "/api/v1/namespaces/kube-system", "/api/v1/namespaces/default"];

const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
const MASTERS: &str = "system:masters";

/// How to start an environment.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Users in addition to [`ADMIN`] and [`OTHER_ADMIN`].
    pub users: Vec<User>,
    /// Whether to run the controllers that remove namespaces and owned objects
    /// and create service accounts, as a complete cluster does.
    pub controller_manager: bool,
    /// Whether the data is on a disk. The default is memory, if there is enough
    /// room: the data is useless after the test.
    pub durable: bool,
    /// Further arguments of the API server.
    pub api_server_arguments: Vec<String>,
}

/// etcd and an API server that a test may stop and damage at will. Drop ends
/// everything; so does the end of this process.
#[derive(Debug)]
pub struct KubeEnvironment {
    watchdog: Arc<Mutex<Watchdog>>,
    folder: PathBuf,
    ports: Ports,
    certificates: Certificates,
    readiness: Readiness,
    credentials: Mutex<Vec<Credentials>>,
    audit: Mutex<AuditLog>,
    running: Mutex<Vec<(Part, u32)>>,
}

impl KubeEnvironment {
    /// Starts an environment, which takes about five seconds; `None` if the
    /// programs are missing. Most tests use [`super::shared`], and those that
    /// take servers down [`KubeEnvironment::for_test`].
    pub async fn start(options: Options) -> anyhow::Result<Option<Self>> {
        let Some(binaries) = tokio::task::spawn_blocking(binaries::find_once).await?? else {
            return Ok(None);
        };
        if options.controller_manager && !binaries.controller_manager.is_file() {
            bail!("there is no {}", binaries.controller_manager.display());
        }
        // Another process may take a port between choice and use. Three
        // failures in a row are no accident.
        let mut last = None;
        for _ in 0..3 {
            match Self::start_once(&binaries, &options).await {
                Ok(environment) => return Ok(Some(environment)),
                Err(error) if format!("{error:#}").contains("address already in use") => {
                    last = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(last.context("no environment was started")?)
    }

    async fn start_once(binaries: &Binaries, options: &Options) -> anyhow::Result<Self> {
        let port = || lasting_loopback_port().context("no free port on 127.0.0.1");
        let ports = Ports { etcd: port()?, etcd_peer: port()?, api_server: port()? };
        let certificates = Certificates::issue()?;
        let watchdog = Watchdog::start(options.durable)?;
        let mut users = vec![
            User::named(ADMIN).in_group(MASTERS),
            User::named(OTHER_ADMIN).in_group(MASTERS),
            User::named(CONTROLLER_MANAGER).in_group(MASTERS),
        ];
        users.extend_from_slice(&options.users);
        let credentials = users
            .into_iter()
            .map(Credentials::issue)
            .collect::<Result<Vec<_>, _>>()
            .context("cannot draw a token")?;
        let environment = Self {
            audit: Mutex::new(AuditLog::new(watchdog.folder().join(file::AUDIT_LOG))),
            folder: watchdog.folder().to_owned(),
            watchdog: Arc::new(Mutex::new(watchdog)),
            readiness: Readiness::new(&certificates.authority_der, ports.api_server)?,
            ports,
            certificates,
            credentials: Mutex::new(credentials),
            running: Mutex::default(),
        };
        environment.lay_out(binaries, options)?;
        environment.start_part(Part::Etcd).await?;
        environment.start_part(Part::ApiServer).await?;
        if options.controller_manager {
            environment.start_part(Part::ControllerManager).await?;
        }
        Ok(environment)
    }

    fn lay_out(&self, binaries: &Binaries, options: &Options) -> anyhow::Result<()> {
        let folder = self.folder.as_path();
        let certificates = &self.certificates;
        let etcd = parts::etcd(binaries, folder, self.ports);
        let more = &options.api_server_arguments;
        let api_server = parts::api_server(binaries, folder, self.ports, more);
        let controller_manager = parts::controller_manager(binaries, folder);
        for (part, text) in [
            (Part::Etcd, etcd),
            (Part::ApiServer, api_server),
            (Part::ControllerManager, controller_manager),
        ] {
            self.write(&format!("{}.sh", part.name()), &text)?;
        }
        self.write(file::AUTHORITY, &certificates.authority)?;
        self.write(file::SERVER, &certificates.server)?;
        self.write(file::SERVER_KEY, &certificates.server_key)?;
        self.write(file::SERVICE_ACCOUNT_KEY, &certificates.service_account_key)?;
        let public_key = &certificates.service_account_public_key;
        self.write(file::SERVICE_ACCOUNT_PUBLIC_KEY, public_key)?;
        self.write(file::AUDIT_POLICY, parts::AUDIT_POLICY)?;
        self.write(file::TOKENS, &users::token_file(&lock(&self.credentials)))?;
        self.write(file::CONTROLLER_KUBECONFIG, &self.kubeconfig(CONTROLLER_MANAGER))
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o600)))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// The URL of the API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.api_server)
    }

    /// The certificate of the authority, in PEM.
    pub fn authority(&self) -> &str {
        &self.certificates.authority
    }

    /// The folder with the log of each part. It appears in the command line of
    /// each process, and is removed with them.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The token of `user`.
    ///
    /// # Panics
    /// When the environment was started without that user.
    pub fn token(&self, user: &str) -> String {
        let credentials = lock(&self.credentials);
        match credentials.iter().find(|known| known.user.name == user) {
            Some(known) => known.token.clone(),
            None => panic!("this environment has no user {user:?}; name it in Options::users"),
        }
    }

    /// A kubeconfig of `user` that refers to no other file.
    ///
    /// # Panics
    /// When the environment was started without that user.
    pub fn kubeconfig(&self, user: &str) -> String {
        users::kubeconfig(&self.url(), self.authority(), user, &self.token(user))
    }

    /// A kubeconfig for a token that the API server itself issued, such as that
    /// of a service account.
    pub fn kubeconfig_with_token(&self, user: &str, token: &str) -> String {
        users::kubeconfig(&self.url(), self.authority(), user, token)
    }

    /// Writes the kubeconfig of `user` to a file, which is removed with the environment.
    pub fn kubeconfig_file(&self, user: &str) -> anyhow::Result<PathBuf> {
        let name = format!("kubeconfig-{}.yaml", user.replace([':', '/'], "-"));
        self.write(&name, &self.kubeconfig(user))?;
        Ok(self.folder.join(name))
    }

    /// Every request that the API server has answered so far, oldest first. A
    /// client may read an answer a moment before its record is written.
    pub fn audit(&self) -> anyhow::Result<Arc<Vec<AuditRecord>>> {
        lock(&self.audit).answered()
    }

    /// Every request that the API server has received so far, oldest first. A
    /// request that was answered is in it.
    pub fn received(&self) -> anyhow::Result<Arc<Vec<AuditRecord>>> {
        lock(&self.audit).received()
    }

    /// The process id of a running part, so that a test can freeze it.
    pub fn pid(&self, part: Part) -> Option<u32> {
        lock(&self.running).iter().find(|(running, _)| *running == part).map(|(_, pid)| *pid)
    }

    /// Ends a part as a power cut would. Data that it acknowledged is there
    /// again after [`KubeEnvironment::start_part`].
    pub async fn kill(&self, part: Part) -> anyhow::Result<()> {
        self.order(part.name(), Watchdog::kill_part).await?;
        lock(&self.running).retain(|(running, _)| *running != part);
        Ok(())
    }

    /// Asks a part to end, as an upgrade would, and waits until it has. An API
    /// server first answers the requests in flight.
    pub async fn stop(&self, part: Part) -> anyhow::Result<()> {
        self.order(part.name(), Watchdog::terminate_part).await?;
        lock(&self.running).retain(|(running, _)| *running != part);
        Ok(())
    }

    /// Starts a part (again) on the same data and port, and waits until it is ready.
    pub async fn start_part(&self, part: Part) -> anyhow::Result<()> {
        let pid = self.order(part.name(), Watchdog::start_part).await?;
        lock(&self.running).push((part, pid));
        if part == Part::Etcd {
            self.until_ready(part, pid).await?;
        }
        // After an etcd restart the API server has to reconnect.
        let api_server = self.pid(Part::ApiServer);
        match api_server {
            Some(pid) if part != Part::ControllerManager => {
                self.until_ready(Part::ApiServer, pid).await
            }
            _ => Ok(()),
        }
    }

    /// Kills a part and starts it again.
    pub async fn restart(&self, part: Part) -> anyhow::Result<()> {
        self.kill(part).await?;
        self.start_part(part).await
    }

    /// Gives `user` a new token; the old one is refused. Restarts the API
    /// server, which reads tokens only at its start.
    pub async fn rotate_token(&self, user: &str) -> anyhow::Result<()> {
        let tokens = {
            let mut credentials = lock(&self.credentials);
            let known = credentials
                .iter_mut()
                .find(|known| known.user.name == user)
                .with_context(|| format!("this environment has no user {user:?}"))?;
            *known = Credentials::issue(known.user.clone()).context("cannot draw a token")?;
            users::token_file(&credentials)
        };
        self.write(file::TOKENS, &tokens)?;
        self.restart(Part::ApiServer).await
    }

    /// Runs a program beside the servers, such as a controller. It ends with
    /// them at the latest, whatever ends the test. Its output goes to
    /// `<name>.log` in the folder; `name` is a plain word. Returns the process
    /// id.
    pub async fn run_beside(
        &self,
        name: &str,
        program: &Path,
        arguments: &[String],
    ) -> anyhow::Result<u32> {
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            bail!("{name:?} is not a plain word");
        }
        self.write(&format!("{name}.sh"), &parts::script(program, arguments))?;
        self.order(name, Watchdog::start_part).await
    }

    /// Asks a program that [`KubeEnvironment::run_beside`] started to end, and
    /// waits until it has.
    pub async fn end_beside(&self, name: &str) -> anyhow::Result<()> {
        self.order(name, Watchdog::terminate_part).await
    }

    /// The end of the log of a part or of a program beside them.
    pub fn end_of_log(&self, name: &str) -> String {
        let log = fs::read(self.folder.join(format!("{name}.log"))).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    async fn order<T: Send + 'static>(
        &self,
        name: &str,
        order: fn(&mut Watchdog, &str) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let (watchdog, name) = (Arc::clone(&self.watchdog), name.to_owned());
        tokio::task::spawn_blocking(move || order(&mut lock(&watchdog), &name)).await?
    }

    async fn until_ready(&self, part: Part, pid: u32) -> anyhow::Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let asked = self.ask(part).await?;
            if asked == Ok(200) {
                return Ok(());
            }
            if !process::is_alive(pid) {
                bail!(
                    "{} ended; the end of its log:\n{}",
                    part.name(),
                    self.end_of_log(part.name())
                );
            }
            if Instant::now() > deadline {
                bail!(
                    "{} is not ready after {TIMEOUT:?} and answers {asked:?}; \
                     the end of its log:\n{}",
                    part.name(),
                    self.end_of_log(part.name())
                );
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn ask(&self, part: Part) -> anyhow::Result<Result<u16, String>> {
        let (readiness, port, token) = (self.readiness.clone(), self.ports.etcd, self.token(ADMIN));
        let asked = tokio::task::spawn_blocking(move || match part {
            Part::Etcd => readiness::ask_plainly(port, "/health"),
            Part::ApiServer | Part::ControllerManager => ask_api_server(&readiness, &token),
        });
        Ok(asked.await?.map_err(|error| error.to_string()))
    }
}

/// The status of the first of [`NEEDED`] that does not answer 200, else 200.
fn ask_api_server(readiness: &Readiness, token: &str) -> io::Result<u16> {
    for path in NEEDED {
        let status = readiness.ask(path, token)?;
        if status != 200 {
            return Ok(status);
        }
    }
    Ok(200)
}

/// Ignores poisoning: the guarded values stay consistent when a test panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
