//! The servers of the scenario: the API server, the proxy before it, the
//! stand-in, and everything that a declaration needs.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use slipway_testkit::control_plane;
use slipway_testkit::kube::{
    ADMIN, Exchange, FaultProxy, KubeEnvironment, OTHER_ADMIN, Odds, Options, User,
};
use tokio::runtime::{Builder, Runtime};

use super::blueprint;
use super::changes::{Arrival, follow, resource};
use super::ledger::{Change, Kind, Ledger, What};

/// So few that the last resource of a project goes often.
pub(crate) const HANDLES_PER_PROJECT: usize = 2;

/// The name of the cluster, and of its kubeconfig.
pub(super) const NAME: &str = "east";
const NAMESPACES: &str = "slipway-project-";
/// The soak's own user on the cluster.
const USER: &str = "soak";

/// A change arrives within milliseconds of its write, on a busy machine within a
/// second. Changes of several watches are ordered after this time.
pub(super) const ARRIVAL: Duration = Duration::from_secs(2);

/// Longer than an action may take, a third of the lease, so that a request lands
/// after the next claim acted; shorter than the lease, after which the absence of
/// something Deleted is proven a second time: nothing can prevent a create that
/// lands after that.
const LATEST: Duration = Duration::from_millis(2_500);

const WRITES: Odds = Odds {
    refuse: 20,
    lose: 30,
    delay: 100,
    drop_answer: 60,
    cut_then_forward: 80,
    duplicate: 60,
    longest: LATEST,
};

/// A read is never landed late or sent twice: nobody would notice.
const READS: Odds = Odds {
    refuse: 10,
    lose: 10,
    delay: 30,
    drop_answer: 10,
    cut_then_forward: 0,
    duplicate: 0,
    longest: Duration::from_millis(1_500),
};

pub(crate) struct Cluster {
    pub(super) proxy: FaultProxy,
    pub(super) client: Client,
    arrivals: Receiver<Arrival>,
    waiting: Vec<(Instant, Change)>,
    ledger: Ledger,
    changes: usize,
    /// How many objects of each kind went.
    gone: BTreeMap<String, usize>,
    kubernetes: KubeEnvironment,
    /// Of the agents that the stand-in runs.
    journal: PathBuf,
    kubeconfigs: PathBuf,
    seed: u64,
    rounds: u64,
    /// Whether each project is withdrawn from the cluster.
    pub(super) withdrawn: Vec<bool>,
    // Dropped last: it runs the proxy and the watches.
    pub(super) runtime: Runtime,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("proxy", &self.proxy).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Starts the servers, without faults. `handles` are used, from `folder`.
    pub(crate) fn start(
        folder: &Path,
        standin: &Path,
        seed: u64,
        handles: usize,
    ) -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("cannot start a runtime")?;
        let options = Options {
            controller_manager: true,
            users: vec![User::named(USER).in_group("system:masters")],
            ..Options::default()
        };
        let kubernetes = runtime
            .block_on(KubeEnvironment::start(options))?
            .context("there is no Kubernetes here; `cargo xtask test kube` provides it")?;
        let proxy = runtime.block_on(FaultProxy::before(&kubernetes));
        let client = runtime.block_on(kubernetes.client(USER))?;
        let kubeconfigs = folder.join("kubeconfigs");
        fs::create_dir_all(&kubeconfigs).context("cannot make a folder for kubeconfigs")?;
        let kubeconfig = proxy.redirect(&kubernetes.kubeconfig(ADMIN));
        fs::write(kubeconfigs.join(NAME), kubeconfig).context("cannot write a kubeconfig")?;
        let journal = folder.join("journal");
        let (sender, arrivals) = channel();
        for kind in [Kind::Namespace, Kind::ExternalSecret, Kind::ProviderConfig, Kind::Composite] {
            runtime.spawn(follow(client.clone(), kind, sender.clone()));
        }
        let cluster = Self {
            proxy,
            client,
            arrivals,
            waiting: Vec::new(),
            ledger: Ledger::default(),
            changes: 0,
            gone: BTreeMap::new(),
            kubernetes,
            journal,
            kubeconfigs,
            seed,
            rounds: 0,
            withdrawn: vec![false; handles.div_ceil(HANDLES_PER_PROJECT)],
            runtime,
        };
        cluster.prepare(standin)?;
        Ok(cluster)
    }

    /// Creates the namespace of the high-water mark, and starts the stand-in.
    fn prepare(&self, standin: &Path) -> anyhow::Result<()> {
        let body = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "slipway-system" },
        });
        let namespaces =
            Api::<DynamicObject>::all_with(self.client.clone(), &resource(Kind::Namespace));
        let (parameters, body) = (PatchParams::apply(USER), Patch::Apply(&body));
        self.runtime.block_on(namespaces.patch("slipway-system", &parameters, &body))?;
        let kubeconfig = self.kubernetes.kubeconfig_file(OTHER_ADMIN)?;
        let arguments = [
            format!("--kubeconfig={}", kubeconfig.display()),
            "--install".to_owned(),
            format!("--provider={}", blueprint::PROVIDER),
            "--agent=in-process".to_owned(),
            "--heartbeat=200ms".to_owned(),
            format!("--journal={}", self.journal.display()),
        ];
        self.runtime.block_on(self.kubernetes.run_beside("standin", standin, &arguments))?;
        self.until_served(Kind::ExternalSecret)?;
        self.until_served(Kind::ProviderConfig)
    }

    fn until_served(&self, kind: Kind) -> anyhow::Result<()> {
        const LIMIT: Duration = Duration::from_secs(60);
        let begun = Instant::now();
        while let Err(error) = self.list(kind) {
            if begun.elapsed() > LIMIT {
                bail!("{error:#}; the stand-in:\n{}", self.kubernetes.end_of_log("standin"));
            }
            crate::world::nap(Duration::from_millis(50));
        }
        Ok(())
    }

    /// The flags of a control plane that serves this cluster.
    pub(crate) fn flags(&self) -> [String; 6] {
        [
            "--kubeconfig-dir".to_owned(),
            self.kubeconfigs.display().to_string(),
            "--rate-limit".to_owned(),
            "10000".to_owned(),
            "--rate-burst".to_owned(),
            "10000".to_owned(),
        ]
    }

    /// Creates everything that a declaration needs, through a control plane.
    pub(crate) fn furnish(&self, plane: &control_plane::Client) -> anyhow::Result<()> {
        let make = |method: &str, path: &str, body: Value| -> anyhow::Result<Value> {
            let answer = plane.call(method, &format!("/api/v1/{path}"), Some(&body))?;
            if !(200..300).contains(&answer.status) {
                bail!("{method} {path} is answered {}: {}", answer.status, answer.body);
            }
            Ok(answer.body)
        };
        make("POST", "labels", json!({ "key": blueprint::LABEL, "propagate": true }))?;
        let cloud = json!({
            "name": "cloud", "provider": blueprint::PROVIDER, "endpoint": { "region": "fsn1" },
        });
        make("POST", "clouds", cloud)?;
        let credential = make("POST", "credentials", json!({ "cloud": "cloud", "name": "main" }))?;
        let credential = credential["id"].as_str().context("a credential without an id")?;
        let access = format!("kubeconfig/{NAME}");
        let cluster = json!({ "name": NAME, "engine": "crossplane", "access": access });
        make("POST", "clusters", cluster)?;
        for number in 0..self.withdrawn.len() {
            let project = project(number);
            make("POST", "projects", json!({ "name": project }))?;
            make("PUT", &format!("projects/{project}/credentials/{credential}"), json!({}))?;
            make("PUT", &format!("projects/{project}/cluster"), json!({ "cluster": NAME }))?;
        }
        let slug = blueprint::SLUG;
        let server = json!({ "slug": slug, "display_name": "Server", "engine": "crossplane" });
        make("POST", "blueprints", server)?;
        make("POST", &format!("blueprints/{slug}/versions"), blueprint::version())?;
        // The control plane installs its definitions.
        self.until_served(Kind::Composite)
    }

    /// The body that declares a handle. A busy node takes as long to come up and
    /// to go.
    pub(crate) fn declaration(&self, slot: usize, handle: &str, busy_seconds: u64) -> Value {
        let mut parameters = json!({});
        if busy_seconds > 0 {
            let script = format!("ready-after={busy_seconds}s; deletion-delay={busy_seconds}s");
            parameters["standin"] = json!(script);
        }
        json!({
            "project": project(slot / HANDLES_PER_PROJECT),
            "handle": handle,
            "blueprint": blueprint::SLUG,
            "parameters": parameters,
        })
    }

    pub(crate) fn projects(&self) -> usize {
        self.withdrawn.len()
    }

    /// Whether the project of a handle is withdrawn, as far as is known.
    pub(crate) fn is_withdrawn(&self, slot: usize) -> bool {
        self.withdrawn[slot / HANDLES_PER_PROJECT]
    }

    /// Faults at random. Each round has a stream of its own, so that one does not
    /// depend on how many requests the round before it took.
    pub(crate) fn begin_faults(&mut self) {
        self.rounds += 1;
        self.proxy.randomize(self.seed.rotate_left(32) ^ self.rounds, WRITES, READS);
    }

    /// No further faults. Requests that are to land late still do.
    pub(crate) fn end_faults(&self) {
        self.proxy.clear();
    }

    /// Marks a composite as failed for good; false if it does not exist.
    pub(crate) fn mark_failed(&self, name: &str) -> anyhow::Result<bool> {
        let found = self.list(Kind::Composite)?;
        let Some(found) = found.iter().find(|found| found.metadata.name.as_deref() == Some(name))
        else {
            return Ok(false);
        };
        let namespace = found.metadata.namespace.as_deref().unwrap_or_default();
        let api = Api::<DynamicObject>::namespaced_with(
            self.client.clone(),
            namespace,
            &resource(Kind::Composite),
        );
        let failed = json!({ "standin.slipway.dev/fail": "the soak says so" });
        let patch = json!({
            "metadata": { "uid": found.metadata.uid, "annotations": failed },
        });
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(&patch));
        match self.runtime.block_on(api.patch(name, &parameters, &patch)) {
            Ok(_) => Ok(true),
            // Gone, or another object of the same name.
            Err(kube::Error::Api(status)) if [404, 409, 422].contains(&status.code) => Ok(false),
            Err(error) => Err(error).context("cannot mark a composite as failed"),
        }
    }

    /// The composites that exist, with the number of each name.
    pub(crate) fn composites(&self) -> anyhow::Result<BTreeMap<String, usize>> {
        let mut found = BTreeMap::new();
        for object in self.list(Kind::Composite)? {
            *found.entry(object.metadata.name.unwrap_or_default()).or_default() += 1;
        }
        Ok(found)
    }

    /// Our objects that exist, of every kind; namespaces only of projects.
    pub(crate) fn objects(&self) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        for kind in [Kind::Composite, Kind::ProviderConfig, Kind::ExternalSecret, Kind::Namespace] {
            for object in self.list(kind)? {
                let name = object.metadata.name.unwrap_or_default();
                if kind != Kind::Namespace || name.starts_with(NAMESPACES) {
                    let namespace = object.metadata.namespace.unwrap_or_default();
                    found.push(format!("{kind:?} {namespace}/{name}"));
                }
            }
        }
        Ok(found)
    }

    fn list(&self, kind: Kind) -> anyhow::Result<Vec<DynamicObject>> {
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource(kind));
        let listed = self.runtime.block_on(api.list(&ListParams::default()));
        Ok(listed.with_context(|| format!("cannot list {kind:?}"))?.items)
    }

    /// Folds the changes that are old enough, and returns what is wrong with them.
    pub(crate) fn take_in(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        while let Ok(arrival) = self.arrivals.try_recv() {
            match arrival {
                Arrival::Change(at, change) => self.waiting.push((at, change)),
                Arrival::Lost(reason) => wrong.push(format!("the soak lost changes: {reason}")),
            }
        }
        self.waiting.sort_by_key(|(_, change)| change.version);
        let due = self.waiting.iter().take_while(|(at, _)| at.elapsed() > ARRIVAL).count();
        for (_, change) in self.waiting.drain(..due) {
            self.changes += 1;
            if change.what == What::Gone {
                *self.gone.entry(format!("{:?}", change.kind)).or_default() += 1;
            }
            wrong.extend(self.ledger.take_in(&change));
        }
        wrong
    }

    /// Writes that the control planes sent, or that took effect, after this moment,
    /// without the high-water mark, which is a report and no action, and without
    /// questions about rights.
    pub(crate) fn writes_since(&self, moment: Instant) -> Vec<Exchange> {
        let is_action = |exchange: &Exchange| {
            let effective = |status: u16| (200..300).contains(&status);
            let mut landed = exchange.forwarded.iter();
            let landed = landed.any(|one| one.at > moment && one.status.is_some_and(effective));
            exchange.method != "GET"
                && (exchange.received > moment || landed)
                && !exchange.path.contains("/namespaces/slipway-system/")
                && !exchange.path.contains("/selfsubject")
        };
        self.proxy.exchanges().into_iter().filter(is_action).collect()
    }

    /// What agents reported last about a composite: a refused token is among it.
    pub(crate) fn journal_of(&self, name: &str) -> String {
        let text = fs::read_to_string(&self.journal).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(name)).collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }

    /// For the last line of the soak.
    pub(crate) fn summary(&self) -> Value {
        json!({
            "requests": self.proxy.exchanges().len(),
            "harmed": self.proxy.counts(),
            "changes": self.changes,
            "gone": self.gone,
        })
    }
}

pub(super) fn project(number: usize) -> String {
    format!("soak-{number}")
}
