//! Implements the substrate port on a root folder. Every action is a short run
//! of file operations on a blocking thread, which never waits for a process.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rustix::process::Signal;
use serde_json::json;
use slipway_app::permits::{ActionPermits, Permit};
use slipway_app::ports::substrate::{
    Address, Error, HighWaterMark, InventoryPage, InventoryRequest, NodeOutput, OutputPart,
    Substrate,
};
use slipway_core::broker::observation::{CompositeReport, LiveComposite};
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::InstallationId;
use slipway_render::RenderedComposite;
use slipway_render::composite;

use super::high_water_mark;
use super::inventory;
use super::node::{self, Locked, Object};
use super::output;
use super::process::{self, Holder, Starter};
use super::root::{Root, random_uid, unfinished};

/// How long a delete waits for the agent to end. Most end in this time, which
/// saves the caller a second tick. A longer wait would occupy its slot.
const PROMPT: Duration = Duration::from_millis(200);
const FIRST_POLL: Duration = Duration::from_millis(10);

/// Attempts of an apply at a directory that appears or disappears meanwhile.
const POLLS: usize = 5;

#[derive(Debug, Clone)]
pub struct LocalConfig {
    /// The substrate root. The first start creates it.
    pub root: PathBuf,
    /// The program that runs as the agent of a node, called with these arguments
    /// and the node directory as the last one.
    pub agent_program: PathBuf,
    pub agent_arguments: Vec<String>,
    /// Time from the first SIGTERM to SIGKILL.
    pub stop_grace: Duration,
    /// The engine touches only objects that carry this installation.
    pub installation: InstallationId,
}

impl LocalConfig {
    pub const DEFAULT_STOP_GRACE: Duration = Duration::from_secs(5);
}

/// The engine. Cheap to clone. Dropping it loses nothing: the agents run on, and
/// another engine on the same root finds them.
#[derive(Debug, Clone)]
pub struct LocalSubstrate {
    inner: Arc<Inner>,
    /// Without them every change is permitted; for tests.
    permits: Option<ActionPermits>,
}

#[derive(Debug)]
struct Inner {
    root: Root,
    starter: Starter,
    stop_grace: Duration,
    installation: String,
    /// The last removal of retired directories failed.
    keeps_retired: AtomicBool,
}

impl LocalSubstrate {
    /// Opens the root and removes what a crashed process left half done.
    pub fn open(config: LocalConfig) -> Result<Self, Error> {
        let shown = config.root.display().to_string();
        let root = Root::open(&config.root)
            .and_then(|root| root.tidy().map(|()| root))
            .map_err(|error| failed("open the substrate root", &shown, &error))?;
        let installation = config.installation.to_string();
        let owner = root
            .take(&installation)
            .map_err(|error| failed("read the owner of the substrate root", &shown, &error))?;
        if owner != installation {
            return Err(Error::Conflict(format!(
                "the substrate root {shown} belongs to the installation {owner} and this database \
                 is the installation {installation}; start with the database of {owner}, or choose \
                 another --substrate-root"
            )));
        }
        let arguments = config.agent_arguments.into_iter().map(OsString::from).collect();
        Ok(Self {
            inner: Arc::new(Inner {
                root,
                starter: Starter::new(config.agent_program, arguments),
                stop_grace: config.stop_grace,
                installation,
                keeps_retired: AtomicBool::new(false),
            }),
            permits: None,
        })
    }

    /// Asks for a permit before each change.
    #[must_use]
    pub fn with_permits(mut self, permits: ActionPermits) -> Self {
        self.permits = Some(permits);
        self
    }

    /// Runs a change, with a permit that is kept until it ended.
    async fn changing<T: Send + 'static>(
        &self,
        action: impl FnOnce(&Inner, &Attended) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = match &self.permits {
            None => None,
            Some(permits) => Some(permits.enter().await?),
        };
        let until = permit.as_ref().map(Permit::ends_at);
        self.run(until, action).await?
    }

    async fn blocking<T: Send + 'static>(
        &self,
        action: impl FnOnce(&Inner, &Attended) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.run(None, action).await
    }

    async fn run<T: Send + 'static>(
        &self,
        permitted_until: Option<Instant>,
        action: impl FnOnce(&Inner, &Attended) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let inner = self.inner.clone();
        let caller = Arc::new(());
        let attended = Attended { caller: Arc::downgrade(&caller), permitted_until };
        // The log lines of the blocking thread keep the caller's span.
        let span = tracing::Span::current();
        let work = move || span.in_scope(|| action(&inner, &attended));
        let done = tokio::task::spawn_blocking(work).await;
        drop(caller);
        done.map_err(|error| Error::Failed(format!("the file work was interrupted: {error}")))
    }
}

#[async_trait]
impl Substrate for LocalSubstrate {
    fn engine(&self) -> Engine {
        Engine::Local
    }

    async fn identity(&self) -> Result<String, Error> {
        self.blocking(|inner, _| match inner.root.observe().doubt(None) {
            None => Ok(inner.root.uid().to_owned()),
            Some(doubt) => Err(Error::Failed(doubt)),
        })
        .await?
    }

    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        let batch = addresses.to_vec();
        let reports = self.blocking(move |inner, _| inner.observe(&batch)).await;
        reports.unwrap_or_else(|error| {
            let unknown = CompositeReport::Unknown { reason: error.to_string() };
            vec![unknown; addresses.len()]
        })
    }

    async fn apply(&self, composite: &RenderedComposite) -> Result<CompositeReport, Error> {
        let composite = composite.clone();
        self.changing(move |inner, attended| {
            inner.apply(&composite, attended)?;
            Ok(inner.seen(&composite))
        })
        .await
    }

    async fn high_water_mark_read(&self, _fresh: bool) -> Result<HighWaterMark, Error> {
        let value = self
            .blocking(|inner, _| {
                inner.trusted()?;
                high_water_mark::read(inner.root.path(), &inner.installation)
                    .map_err(|error| failed("read", "the high-water mark", &error))
            })
            .await??;
        Ok(HighWaterMark { value, fresh: true })
    }

    async fn high_water_mark_write(&self, heartbeat: i64) -> Result<(), Error> {
        self.blocking(move |inner, _| {
            inner.trusted()?;
            high_water_mark::write(inner.root.path(), &inner.installation, heartbeat)
                .map_err(|error| failed("write", "the high-water mark", &error))
        })
        .await?
    }

    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error> {
        let mut tell = Tell::Agent;
        let looks = PROMPT.as_millis() / FIRST_POLL.as_millis();
        for _ in 0..looks {
            let (address, uid) = (address.clone(), uid.to_owned());
            let step = move |inner: &Inner, attended: &Attended| {
                inner.delete(&address, &uid, tell, attended)
            };
            match self.changing(step).await? {
                Deletion::Done => return Ok(()),
                Deletion::Waiting => tokio::time::sleep(FIRST_POLL).await,
            }
            tell = Tell::Nobody;
        }
        Ok(())
    }

    async fn output(
        &self,
        address: &Address,
        part: OutputPart,
    ) -> Result<Option<NodeOutput>, Error> {
        let address = address.clone();
        self.blocking(move |inner, _| {
            if let Some(doubt) = inner.root.observe().doubt(address.substrate_uid.as_deref()) {
                return Err(Error::Failed(doubt));
            }
            let directory = inner.directory(&address.namespace, &address.name)?;
            let read = output::read(&directory, part);
            read.map(Some).map_err(|error| failed("read the output of", &address.name, &error))
        })
        .await?
    }

    async fn inventory(&self, request: &InventoryRequest) -> Result<InventoryPage, Error> {
        let request = request.clone();
        self.blocking(move |inner, _| {
            inventory::page(&inner.root, &inner.installation, &request).map_err(Error::Failed)
        })
        .await?
    }
}

/// Whether the caller still waits for an action. The caller may have given up
/// (the action has a deadline within the lease), but the thread that runs the
/// action cannot be stopped, so it checks before each step that changes anything.
/// Otherwise a delayed apply could recreate what a later worker has deleted.
#[derive(Debug)]
struct Attended {
    caller: Weak<()>,
    /// The end of the permit for the change.
    permitted_until: Option<Instant>,
}

impl Attended {
    /// Called immediately before each change.
    fn check(&self, shown: &str) -> Result<(), Error> {
        if self.caller.strong_count() == 0 {
            return Err(Error::Failed(format!("nobody waits for the work on {shown} any more")));
        }
        match self.permitted_until {
            Some(until) if Instant::now() >= until => Err(Error::Withheld),
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tell {
    Agent,
    Nobody,
}

enum Deletion {
    Done,
    /// The agent received a signal and has not ended yet.
    Waiting,
}

impl Inner {
    /// Refuses if another root is at the path than the one that was opened.
    fn trusted(&self) -> Result<(), Error> {
        self.root.observe().doubt(None).map_or(Ok(()), |doubt| Err(Error::Failed(doubt)))
    }

    /// Logs once that it cannot, and once that it can again.
    fn remove_retired(&self) {
        let removed = self.root.retired_remove();
        let failed_before = self.keeps_retired.swap(removed.is_err(), Ordering::Relaxed);
        match removed {
            Err(error) if !failed_before => tracing::warn!(
                %error,
                "a retired node directory cannot be removed yet; this is logged again when it is gone"
            ),
            Ok(()) if failed_before => {
                tracing::info!("every retired node directory is removed");
            }
            _ => {}
        }
    }

    fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        self.remove_retired();
        let before = self.root.observe();
        let reports: Vec<_> = addresses
            .iter()
            .map(|address| match before.doubt(address.substrate_uid.as_deref()) {
                Some(reason) => CompositeReport::Unknown { reason },
                None => self.report(address),
            })
            .collect();
        // If the root went away in between, everything looked absent.
        let after = self.root.observe();
        let confirm = |(report, address): (CompositeReport, &Address)| match report {
            CompositeReport::Absent => match after.doubt(address.substrate_uid.as_deref()) {
                Some(reason) => CompositeReport::Unknown { reason },
                None => CompositeReport::Absent,
            },
            report => report,
        };
        reports.into_iter().zip(addresses).map(confirm).collect()
    }

    fn report(&self, address: &Address) -> CompositeReport {
        let unknown = |reason| CompositeReport::Unknown { reason };
        let directory = match self.directory(&address.namespace, &address.name) {
            Ok(directory) => directory,
            Err(error) => return unknown(error.to_string()),
        };
        let shown = format!("{}/{}", address.namespace, address.name);
        match Object::read(&directory) {
            Ok(None) => CompositeReport::Absent,
            Err(error) => unknown(format!("the node directory {shown} cannot be read: {error}")),
            Ok(Some(object)) => {
                let owner = address.provisioned_resource_id.to_string();
                if let Err(error) = self.must_be_ours(&object, &shown, Some(&owner)) {
                    return CompositeReport::Foreign { reason: error.to_string() };
                }
                match live(&directory, &object) {
                    Ok(live) => CompositeReport::Present(Box::new(live)),
                    Err(error) => {
                        unknown(format!("the node directory {shown} cannot be read: {error}"))
                    }
                }
            }
        }
    }

    /// Reports a composite that was just applied.
    fn seen(&self, composite: &RenderedComposite) -> CompositeReport {
        let labels = &composite.expose_object()["metadata"]["labels"];
        let label = labels[composite::LABEL_PROVISIONED_RESOURCE].as_str();
        match label.and_then(|label| label.parse().ok()) {
            Some(provisioned_resource_id) => self.report(&Address {
                provisioned_resource_id,
                namespace: composite.namespace().to_owned(),
                name: composite.name().to_owned(),
                composite_type: None,
                substrate_uid: None,
            }),
            None => CompositeReport::Unknown { reason: "its label names no resource".to_owned() },
        }
    }

    /// *Expected flow:* if absent, create a directory beside and move it into
    /// place → lock → check the owner and the claim that wrote it last → write
    /// what differs → start the agent unless it runs.
    /// *Guarantees:* never touches an object of another owner, or one written
    /// under a newer claim; two applies never leave two agents.
    /// *Caveat:* returns before the agent has its lock.
    fn apply(&self, composite: &RenderedComposite, attended: &Attended) -> Result<(), Error> {
        if let Some(doubt) = self.root.observe().doubt(None) {
            return Err(Error::Failed(doubt));
        }
        let shown = format!("{}/{}", composite.namespace(), composite.name());
        let fail = |error: io::Error| failed("apply", &shown, &error);
        let directory = self.directory(composite.namespace(), composite.name())?;
        let rendered = composite.expose_object();
        for _ in 0..POLLS {
            let Some(locked) = Locked::lock(&directory).map_err(fail)? else {
                let uid = random_uid().map_err(fail)?;
                let unfinished = unfinished(&directory, &uid);
                attended.check(&shown)?;
                node::create(&directory, rendered, &uid, &unfinished).map_err(fail)?;
                continue;
            };
            let Some(live) = locked.object().map_err(fail)? else {
                continue;
            };
            let owner =
                rendered["metadata"]["labels"][composite::LABEL_PROVISIONED_RESOURCE].as_str();
            self.must_be_ours(&live, &shown, owner)?;
            let ours = composite.claim_token();
            if let Some(found) = composite::claim_token(live.value()).filter(|found| *found > ours)
            {
                return Err(Error::Superseded { ours, found });
            }
            if node::is_terminating(&directory).map_err(fail)? {
                return Err(Error::Conflict(format!(
                    "the node {shown} is being taken down; apply again when it is gone"
                )));
            }
            attended.check(&shown)?;
            locked.update(&live, rendered).map_err(fail)?;
            return self
                .starter
                .ensure_running(&directory)
                .map_err(|error| failed("start the agent of", &shown, &error));
        }
        Err(Error::Failed(format!("the node directory {shown} keeps coming and going; try again")))
    }

    /// *Expected flow:* check the uid → mark as terminating → SIGTERM, or
    /// SIGKILL once the grace has passed → when no process has the agent's lock:
    /// move the directory to `.gone` → remove it.
    /// *Guarantees:* the directory disappears in one step, and only while no
    /// agent can run in it. The next delete, observation or start removes what
    /// a crash leaves.
    fn delete(
        &self,
        address: &Address,
        uid: &str,
        tell: Tell,
        attended: &Attended,
    ) -> Result<Deletion, Error> {
        if let Some(doubt) = self.root.observe().doubt(address.substrate_uid.as_deref()) {
            return Err(Error::Failed(doubt));
        }
        let shown = format!("{}/{}", address.namespace, address.name);
        let fail = |error: io::Error| failed("delete", &shown, &error);
        let directory = self.directory(&address.namespace, &address.name)?;
        let done = || self.root.retired_remove().map(|()| Deletion::Done).map_err(fail);

        let Some(locked) = Locked::lock(&directory).map_err(fail)? else {
            return done();
        };
        let Some(live) = locked.object().map_err(fail)? else {
            return done();
        };
        let owner = address.provisioned_resource_id.to_string();
        self.must_be_ours(&live, &shown, Some(&owner))?;
        if live.uid() != uid {
            return Err(Error::Conflict(format!(
                "the node {shown} has the uid {} and not {uid}: it was made anew since it was read",
                live.uid()
            )));
        }
        attended.check(&shown)?;
        let age = locked.terminate().map_err(fail)?;
        if tell == Tell::Agent {
            let signal = if age >= self.stop_grace { Signal::KILL } else { Signal::TERM };
            process::signal(&directory, signal).map_err(fail)?;
        }
        let retired = process::without_agent(&directory, || self.root.node_retire(&directory, uid));
        if retired.map_err(fail)?.is_none() {
            return Ok(Deletion::Waiting);
        }
        self.starter.forget(&directory);
        drop(locked);
        done()
    }

    fn directory(&self, namespace: &str, name: &str) -> Result<PathBuf, Error> {
        self.root.node(namespace, name).ok_or_else(|| {
            Error::Failed(format!(
                "`{namespace}/{name}` is no name for a node directory; names are plain and do not begin with a dot"
            ))
        })
    }

    fn must_be_ours(&self, object: &Object, shown: &str, owner: Option<&str>) -> Result<(), Error> {
        let installation = composite::installation(object.value());
        if installation != Some(&self.installation) {
            return Err(Error::Conflict(format!(
                "the node {shown} belongs to the installation {} and not to {}; it is left alone",
                installation.unwrap_or("(none)"),
                self.installation,
            )));
        }
        if object.provisioned_resource() != owner {
            return Err(Error::Conflict(format!(
                "the node {shown} belongs to the provisioned resource {} and not to {}; it is left alone",
                object.provisioned_resource().unwrap_or("(none)"),
                owner.unwrap_or("(none)"),
            )));
        }
        Ok(())
    }
}

fn live(directory: &Path, object: &Object) -> io::Result<LiveComposite> {
    let holder = process::holder(directory)?;
    Ok(LiveComposite {
        uid: object.uid().to_owned(),
        ready: holder != Holder::Nobody,
        failure: node::failure(directory)?,
        terminating: node::is_terminating(directory)?,
        owned_hash: composite::owned_hash(object.value()),
        carried: composite::carried(object.value()),
        injected: composite::injected(object.value()),
        evidence: json!({
            "directory": directory.display().to_string(),
            "pid": holder.pid().map(|pid| pid.as_raw_nonzero().get()),
            "agent": node::status(directory),
        }),
    })
}

fn failed(action: &str, what: &str, error: &io::Error) -> Error {
    Error::Failed(format!("could not {action} {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_nobody_waits_for_is_not_begun() {
        let caller = Arc::new(());
        let attended = Attended { caller: Arc::downgrade(&caller), permitted_until: None };
        assert_eq!(attended.check("x"), Ok(()));
        let over = Some(Instant::now());
        let late = Attended { caller: Arc::downgrade(&caller), permitted_until: over };
        assert_eq!(late.check("x"), Err(Error::Withheld), "stopped between permit and change");
        drop(caller);
        assert!(matches!(attended.check("x"), Err(Error::Failed(_))));
    }
}
