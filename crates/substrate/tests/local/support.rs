//! A root with an engine on it, composites as the renderer makes them, and the
//! stand-in agent.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use slipway_app::ports::substrate::{Address, Error, Substrate};
use slipway_core::broker::attempt::{ProvisionedResource, StoredAttempt, derive_xr_name};
use slipway_core::broker::observation::{CompositeReport, LiveComposite};
use slipway_core::broker::phase::Phase;
use slipway_core::broker::resource::Resource;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint_version::{
    BlueprintVersion, Engine, InjectionStrategy, MeshRole,
};
use slipway_core::catalog::parameters::{ParameterSchema, ParameterValues};
use slipway_core::ids::{
    BlueprintId, BlueprintVersionId, BootstrapTokenId, ClaimToken, CloudCredentialId,
    InstallationId, Partition, ProjectId, ProvisionedResourceId, ResourceId, Revision,
};
use slipway_core::secret::Secret;
use slipway_core::text::{Handle, Labels};
use slipway_core::time::Timestamp;
use slipway_render::RenderedComposite;
use slipway_render::local_node::{Injection, NodeSettings, render};
use slipway_substrate::local::{LocalConfig, LocalSubstrate};
use uuid::Uuid;

const TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const NAMESPACE: &str = "slipway-project-1";
pub(crate) const OURS: u128 = 1;

/// The body of the agents that the engine starts: takes the lock, writes its pid
/// to `lived`, and ends when its directory is gone. SIGTERM ends it by default.
#[test]
#[ignore = "started by the engine as a process"]
fn stand_in_agent() {
    let directory = std::env::current_dir().unwrap();
    if !directory.join("composite.json").exists() {
        return;
    }
    let lock =
        OpenOptions::new().write(true).create(true).truncate(false).open("agent.lock").unwrap();
    fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).expect("another agent is alive");
    let mut lived = OpenOptions::new().append(true).create(true).open("lived").unwrap();
    writeln!(lived, "{}", std::process::id()).unwrap();
    while directory.exists() {
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) engine: LocalSubstrate,
    stop_grace: Duration,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_grace(LocalConfig::DEFAULT_STOP_GRACE)
    }

    pub(crate) fn with_grace(stop_grace: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path().join("root"), OURS, stop_grace);
        Self { folder, engine, stop_grace }
    }

    /// Another replica, or this one after it was killed and started again.
    pub(crate) fn another_engine(&self) -> LocalSubstrate {
        open(self.root(), OURS, self.stop_grace)
    }

    /// An engine of another installation. A root accepts only its owner, so the
    /// file that names the owner is removed first.
    pub(crate) fn engine_of(&self, installation: u128) -> LocalSubstrate {
        fs::remove_file(self.root().join("substrate.installation")).unwrap();
        open(self.root(), installation, self.stop_grace)
    }

    /// The same, while the root belongs to our installation.
    pub(crate) fn try_engine_of(&self, installation: u128) -> Result<LocalSubstrate, Error> {
        try_open(self.root(), installation, self.stop_grace)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.root().join(NAMESPACE).join(address().name)
    }

    pub(crate) async fn report(&self) -> CompositeReport {
        let mut reports = self.engine.observe(&[address()]).await;
        assert_eq!(reports.len(), 1);
        reports.remove(0)
    }

    pub(crate) async fn live(&self) -> LiveComposite {
        match self.report().await {
            CompositeReport::Present(live) => *live,
            other => panic!("expected a live composite: {other:?}"),
        }
    }

    pub(crate) async fn apply_until_ready(&self) -> LiveComposite {
        self.engine.apply(&mk_composite().rendered()).await.unwrap();
        self.until_ready().await
    }

    pub(crate) async fn until_ready(&self) -> LiveComposite {
        self.until("the node is ready", |report| {
            report.live().is_some_and(|live| self.has_noted(live))
        })
        .await;
        self.live().await
    }

    /// Whether the agent is ready and has written its pid to `lived`, which the
    /// stand-in does after it has the lock.
    fn has_noted(&self, live: &LiveComposite) -> bool {
        let noted = fs::read_to_string(self.directory().join("lived")).unwrap_or_default();
        live.ready && noted.lines().last() == Some(&live.evidence["pid"].to_string())
    }

    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&CompositeReport) -> bool) {
        let look = async {
            while !condition(&self.report().await) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(TIMEOUT, look).await.is_err() {
            let log = fs::read_to_string(self.directory().join("agent.log")).unwrap_or_default();
            panic!("not within {TIMEOUT:?}: {what}; {:?}; agent.log:\n{log}", self.report().await);
        }
    }

    /// Calls apply as a loop does, until the node is ready.
    pub(crate) async fn apply_again_until_ready(&self) -> LiveComposite {
        let apply = async {
            while !self.has_noted(&self.live().await) {
                self.engine.apply(&mk_composite().rendered()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let done = tokio::time::timeout(TIMEOUT, apply).await;
        assert!(done.is_ok(), "not ready within {TIMEOUT:?}: {:?}", self.report().await);
        self.live().await
    }

    /// Calls delete as a loop does, until the composite is proven absent.
    pub(crate) async fn delete_until_absent(&self, uid: &str) {
        let delete = async {
            while !matches!(self.report().await, CompositeReport::Absent) {
                self.engine.delete(&address(), uid).await.unwrap();
            }
        };
        let done = tokio::time::timeout(TIMEOUT, delete).await;
        assert!(done.is_ok(), "not absent within {TIMEOUT:?}: {:?}", self.report().await);
    }

    /// How many processes ever had the lock.
    pub(crate) fn lived(&self) -> usize {
        fs::read_to_string(self.directory().join("lived")).unwrap_or_default().lines().count()
    }
}

/// Removes the folder in several attempts: an agent that is just starting writes
/// files meanwhile, which makes an attempt fail and would leave the agent alive.
impl Drop for Bench {
    fn drop(&mut self) {
        let removed = (0..10_000).any(|_| match fs::remove_dir_all(self.folder.path()) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        });
        if !removed && !std::thread::panicking() {
            panic!("{} cannot be removed, agents in it live on", self.folder.path().display());
        }
    }
}

fn open(root: PathBuf, installation: u128, stop_grace: Duration) -> LocalSubstrate {
    try_open(root, installation, stop_grace).unwrap()
}

fn try_open(
    root: PathBuf,
    installation: u128,
    stop_grace: Duration,
) -> Result<LocalSubstrate, Error> {
    let arguments = ["--exact", "support::stand_in_agent", "--ignored", "--nocapture"];
    LocalSubstrate::open(LocalConfig {
        root,
        agent_program: std::env::current_exe().unwrap(),
        agent_arguments: arguments.map(str::to_owned).to_vec(),
        stop_grace,
        installation: InstallationId::new(Uuid::from_u128(installation)),
    })
}

pub(crate) fn pid(live: &LiveComposite) -> Pid {
    let raw = live.evidence["pid"].as_i64().unwrap();
    Pid::from_raw(raw.try_into().unwrap()).unwrap()
}

/// Kills a process at the end of a test, also of one that fails early. Uses a
/// pidfd, so that no other process is hit if it has ended by then.
pub(crate) struct EndOnDrop(rustix::fd::OwnedFd);

impl EndOnDrop {
    pub(crate) fn new(live: &LiveComposite) -> Self {
        Self(pidfd_open(pid(live), PidfdFlags::empty()).unwrap())
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }
}

pub(crate) fn address() -> Address {
    let id = ProvisionedResourceId::new(Uuid::from_u128(10));
    Address {
        provisioned_resource_id: id,
        namespace: NAMESPACE.to_owned(),
        name: derive_xr_name(id),
        composite_type: None,
        substrate_uid: None,
    }
}

/// A composite whose fields a test may change.
pub(crate) struct Composite {
    pub(crate) installation: u128,
    pub(crate) claim_token: i64,
    pub(crate) injection: Injection,
}

pub(crate) fn mk_composite() -> Composite {
    let id = BootstrapTokenId::new(Uuid::from_u128(20));
    let token = Secret::new("psb_test_aaaa_node_bbbbbbbbbbbbbbbbbbbbbbbb");
    Composite { installation: OURS, claim_token: 3, injection: Injection::Fresh { id, token } }
}

impl Composite {
    pub(crate) fn rendered(&self) -> RenderedComposite {
        let settings = NodeSettings {
            installation: InstallationId::new(Uuid::from_u128(self.installation)),
            public_url: "http://127.0.0.1:1".to_owned(),
            heartbeat_interval_ms: 1_000,
            orphan_after_ms: 600_000,
            node_image: None,
            authorities: None,
        };
        let claim_token = ClaimToken(self.claim_token);
        render(&mk_snapshot(), NAMESPACE, &settings, claim_token, &self.injection).unwrap()
    }
}

fn mk_snapshot() -> ResourceSnapshot {
    let id = address().provisioned_resource_id;
    let moment = Timestamp::from_micros(1_000_000);
    let attempt = ProvisionedResource::hydrate(StoredAttempt {
        id,
        resource_id: ResourceId::new(Uuid::from_u128(11)),
        project_id: ProjectId::new(Uuid::from_u128(12)),
        blueprint_version_id: BlueprintVersionId::new(Uuid::from_u128(13)),
        cloud_credential_id: CloudCredentialId::new(Uuid::from_u128(14)),
        attempt: 1,
        phase: Phase::Pending.as_str().to_owned(),
        phase_since: moment,
        failure_reason: None,
        xr_name: derive_xr_name(id),
        bootstrap_token_id: None,
        parameter_values: ParameterValues::default(),
        partition: Partition::new(Uuid::from_u128(7)),
        in_use: true,
        hostname: None,
        correction: None,
        deletion_requested_at: None,
        unsettled_since: moment,
        absence_proven_at: None,
        abandoned_at: None,
        revision: Revision::FIRST,
        created_at: moment,
        updated_at: moment,
    })
    .unwrap();
    ResourceSnapshot {
        now: moment,
        resource: Resource {
            id: attempt.resource_id(),
            project_id: attempt.project_id(),
            handle: Handle::parse("edge-1").unwrap(),
            labels: Labels::default(),
            revision: Revision::FIRST,
            deletion_id: None,
            surge: None,
            owner: None,
            deleted_at: None,
            created_at: moment,
            updated_at: moment,
        },
        latest: attempt.attempt(),
        other: None,
        attempt,
        blueprint: Arc::new(BlueprintVersion {
            id: BlueprintVersionId::new(Uuid::from_u128(13)),
            blueprint_id: BlueprintId::new(Uuid::from_u128(15)),
            slug: "local-node".to_owned(),
            version: "v1".to_owned(),
            engine: Engine::Local,
            composite_type: None,
            cloud_tags: false,
            own_provider_config: false,
            composition_name: None,
            surge: false,
            parameter_schema: ParameterSchema::new(Vec::new()).unwrap(),
            injection_strategy: InjectionStrategy::CloudInitUserData,
            mesh_role: MeshRole::Node,
            provider_kinds: vec!["local".to_owned()],
        }),
        placement: None,
        provider: None,
        read_as: None,
        token: None,
        presented: None,
        node: None,
        deletion: None,
        blockers: Vec::new(),
        claim_token: ClaimToken(3),
        failures: 0,
        observed: None,
        due_at: None,
        kept: Vec::new(),
        waits_for: Vec::new(),
    }
}
