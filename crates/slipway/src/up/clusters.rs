//! Finds the management clusters of engine crossplane and the projects of engine
//! hetzner that this process can reach, and the clusters of engine manual, which every
//! process serves: they are rows. A new row, a new file in the folder of kubeconfigs or
//! of tokens, or another access of a row is served without a restart; a cluster whose
//! row was deleted is served no longer.
//!
//! *Guarantees:* an unreachable cluster keeps neither the process from starting
//! nor another cluster from being served. The engine acts only after a heartbeat
//! compared the high-water mark of its cluster with the database, so a restored
//! database is recognised before anything happens there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slipway_app::kind::ShowDeleted;
use slipway_app::operations::control;
use slipway_app::permits::ActionPermits;
use slipway_app::placement::reconcile::ManagementRegistry;
use slipway_app::ports::Substrate;
use slipway_app::ports::store::{Error as StoreError, Page};
use slipway_controller::Shutdown;
use slipway_core::catalog::Name;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::{ClusterId, InstallationId};
use slipway_core::placement::cluster::{Cluster, ClusterAccess};
use slipway_substrate::crossplane::{Access, CrossplaneConfig, CrossplaneSubstrate};
use slipway_substrate::hetzner::{
    DEFAULT_ENDPOINT, Endpoint, HetznerConfig, HetznerSubstrate, ProjectAccess, TokenFile,
};
use slipway_substrate::manual::ManualSubstrate;
use tokio::task::JoinSet;

use super::partitions::Partitions;
use super::projects;
use crate::config::Config;
use crate::metered_substrate::MeteredSubstrate;

/// How often rows and files are read without a wake. A cluster that was
/// registered at another replica waits this long.
const POLL: Duration = Duration::from_secs(2);

/// Rows in a page.
const PAGE: u32 = 200;

/// Finds clusters and serves them.
#[derive(Debug)]
pub(super) struct Clusters {
    partitions: Partitions,
    installation: InstallationId,
    reach: Reach,
    /// The clusters that the placement loop can reach.
    registry: ManagementRegistry,
    sweep: Duration,
    system_namespace: String,
    served: Mutex<HashMap<ClusterId, Served>>,
}

/// A cluster that this process serves, and the way by which it reaches it.
#[derive(Debug)]
enum Served {
    /// It is nothing but its row.
    Row,
    Crossplane {
        engine: Arc<CrossplaneSubstrate>,
        access: Access,
    },
    Hetzner {
        engine: Arc<HetznerSubstrate>,
        access: ProjectAccess,
    },
}

/// How this process reaches a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    Cluster(Access),
    Project(ProjectAccess),
}

/// The credentials that this process has for clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reach {
    in_pod: bool,
    kubeconfig_dir: Option<PathBuf>,
    token_dir: Option<PathBuf>,
}

impl Reach {
    /// The access of this process to a cluster, if it has any.
    async fn of(&self, access: &ClusterAccess) -> Option<Way> {
        match access {
            ClusterAccess::InCluster => self.in_pod.then_some(Way::Cluster(Access::InCluster)),
            ClusterAccess::Kubeconfig(name) => {
                let path = file_in(self.kubeconfig_dir.as_deref(), name).await?;
                Some(Way::Cluster(Access::Kubeconfig(path)))
            }
            ClusterAccess::Hetzner { token, endpoint } => {
                let path = file_in(self.token_dir.as_deref(), token).await?;
                let endpoint = endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT);
                let endpoint = Endpoint::parse(endpoint).ok()?;
                Some(Way::Project(ProjectAccess { endpoint, token: TokenFile::new(path) }))
            }
        }
    }
}

/// The file of this name, if it is there. A name is a DNS label, so it cannot lead out of the
/// folder.
async fn file_in(folder: Option<&Path>, name: &Name) -> Option<PathBuf> {
    let path = folder?.join(name.as_str());
    tokio::fs::metadata(&path).await.ok()?.is_file().then_some(path)
}

impl Clusters {
    pub(super) fn new(
        partitions: Partitions,
        registry: ManagementRegistry,
        config: &Config,
    ) -> Self {
        Self {
            installation: partitions.engines.node_settings.installation,
            partitions,
            registry,
            reach: Reach {
                in_pod: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
                kubeconfig_dir: config.kubeconfig_dir.clone(),
                token_dir: config.provider_token_dir.clone(),
            },
            sweep: config.reconcile_interval,
            system_namespace: config.system_namespace.clone(),
            served: Mutex::default(),
        }
    }

    /// Serves new clusters until shutdown, then waits for their partitions.
    pub(super) async fn keep(self, shutdown: Shutdown) {
        let mut tasks = JoinSet::new();
        let wake = Arc::clone(&self.partitions.context.wakes.clusters);
        let looking = async {
            loop {
                self.observe(&mut tasks, &shutdown).await;
                tokio::select! {
                    () = wake.notified() => {}
                    () = tokio::time::sleep(POLL) => {}
                }
            }
        };
        let mut stopping = shutdown.clone();
        tokio::select! {
            () = looking => {}
            () = stopping.requested() => {}
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "the loop of a cluster did not end cleanly");
            }
        }
    }

    /// Serves every reachable cluster that is not served yet.
    async fn observe(&self, tasks: &mut JoinSet<()>, shutdown: &Shutdown) {
        let clusters = match self.registered().await {
            Ok(clusters) => clusters,
            Err(error) => {
                if !error.is_logged() {
                    tracing::warn!(%error, "cannot list the clusters to serve; trying again");
                }
                return;
            }
        };
        self.leave_deleted(&clusters);
        for cluster in clusters {
            let is_served = self.partitions.serve(cluster.id.into());
            if cluster.engine == Engine::Manual {
                if !is_served {
                    let manual = ManualSubstrate::new(cluster.id.into(), self.permits());
                    self.serve(&cluster, Arc::new(manual), tasks, shutdown).await;
                    self.served().insert(cluster.id, Served::Row);
                }
                continue;
            }
            let Some(access) = &cluster.access else { continue };
            let Some(way) = self.reach.of(access).await else { continue };
            match way {
                way if is_served => self.reach_by(&cluster, way).await,
                Way::Cluster(access) => {
                    self.serve_crossplane(&cluster, access, tasks, shutdown).await;
                }
                Way::Project(access) => {
                    self.serve_hetzner(&cluster, access, tasks, shutdown).await;
                }
            }
        }
    }

    /// Takes over another access of a cluster that is served.
    async fn reach_by(&self, cluster: &Cluster, way: Way) {
        let project = {
            let mut served = self.served();
            match (served.get_mut(&cluster.id), way) {
                (Some(Served::Crossplane { engine, access }), Way::Cluster(new))
                    if *access != new =>
                {
                    engine.reach_by(new.clone());
                    *access = new;
                    None
                }
                (Some(Served::Hetzner { engine, access }), Way::Project(new)) if *access != new => {
                    *access = new.clone();
                    Some((Arc::clone(engine), new))
                }
                _ => return,
            }
        };
        let name = cluster.name.as_str();
        tracing::info!(cluster = name, "a cluster is reached by another access from now on");
        if let Some((engine, access)) = project
            && let Err(error) = engine.reach_by(access).await
        {
            tracing::error!(cluster = name, %error, "a project at a provider cannot be reached");
        }
    }

    /// Nothing is placed on a cluster whose row is gone, and no heartbeat compares its
    /// high-water mark. Its loops have nothing to do any more; they end with the process
    /// and are not shown.
    fn leave_deleted(&self, registered: &[Cluster]) {
        self.served().retain(|id, _| {
            let stays = registered.iter().any(|cluster| cluster.id == *id);
            if !stays {
                self.registry.remove(*id);
                self.partitions.engines.leave((*id).into());
                self.partitions.hide((*id).into());
                tracing::info!(cluster_id = %id, "a deleted cluster is not served any more");
            }
            stays
        });
    }

    fn served(&self) -> MutexGuard<'_, HashMap<ClusterId, Served>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn registered(&self) -> Result<Vec<Cluster>, StoreError> {
        let store = &self.partitions.context.stores;
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = store
                .kind::<Cluster>()
                .page(&ShowDeleted(false), Page { after, limit: PAGE })
                .await?;
            let engines = [Engine::Crossplane, Engine::Manual, Engine::Hetzner];
            let ours = |cluster: &Cluster| engines.contains(&cluster.engine);
            found.extend(page.items.into_iter().filter(ours));
            // The API shows rows that cannot be read; they are skipped here.
            let Some(next) = page.next else { return Ok(found) };
            after = Some(ClusterId::new(next));
        }
    }

    fn permits(&self) -> ActionPermits {
        ActionPermits {
            permits: Arc::clone(&self.partitions.permits),
            stores: self.partitions.context.stores.clone(),
        }
    }

    async fn serve_crossplane(
        &self,
        cluster: &Cluster,
        access: Access,
        tasks: &mut JoinSet<()>,
        shutdown: &Shutdown,
    ) {
        let crossplane = CrossplaneSubstrate::new(CrossplaneConfig {
            cluster: cluster.name.as_str().to_owned(),
            access: access.clone(),
            installation: self.installation,
            sweep: self.sweep,
        })
        .with_system_namespace(&self.system_namespace)
        .with_permits(self.permits());
        let crossplane = Arc::new(crossplane);
        self.serve(cluster, Arc::clone(&crossplane) as _, tasks, shutdown).await;
        // The placement loop can now write what its projects need there.
        let served = Served::Crossplane { engine: Arc::clone(&crossplane), access };
        self.served().insert(cluster.id, served);
        self.registry.add(cluster.id, crossplane);
        self.partitions.context.wakes.wake_placement();
    }

    async fn serve_hetzner(
        &self,
        cluster: &Cluster,
        access: ProjectAccess,
        tasks: &mut JoinSet<()>,
        shutdown: &Shutdown,
    ) {
        let installation = self.installation;
        let config = HetznerConfig { access: access.clone(), installation };
        let engine = match HetznerSubstrate::new(config) {
            Ok(engine) => Arc::new(engine.with_permits(self.permits())),
            Err(error) => {
                let name = cluster.name.as_str();
                tracing::error!(cluster = name, %error, "a project at a provider is not served");
                return;
            }
        };
        self.serve(cluster, Arc::clone(&engine) as _, tasks, shutdown).await;
        let context = self.partitions.context.clone();
        let verifying = Arc::clone(&engine);
        tasks.spawn(projects::keep_verified(context, cluster.id, verifying, shutdown.clone()));
        self.served().insert(cluster.id, Served::Hetzner { engine, access });
    }

    async fn serve(
        &self,
        cluster: &Cluster,
        engine: Arc<dyn Substrate>,
        tasks: &mut JoinSet<()>,
        shutdown: &Shutdown,
    ) {
        let (partition, name) = (cluster.id.into(), cluster.name.as_str());
        let context = &self.partitions.context;
        let metered = MeteredSubstrate::new(engine, Arc::clone(&context.meter), name);
        self.partitions.engines.serve(partition, name, Arc::new(metered));
        self.heartbeat(name).await;
        let view = self.partitions.open(partition, name);
        match view.resources.boot_sweep().await {
            Ok(due) => tracing::info!(cluster = name, due, "a cluster is served from now on"),
            // As at the start: the loop claims the resources by their due time.
            Err(error) => tracing::warn!(
                cluster = name,
                %error,
                "a cluster is served from now on, its resources as they fall due"
            ),
        }
        self.partitions.drive(&view, tasks, shutdown);
    }

    /// Compares the high-water mark of a cluster that was just added.
    async fn heartbeat(&self, cluster: &str) {
        let Partitions { context, engines, permits, worker, lease, .. } = &self.partitions;
        let compared = control::heartbeat(context, engines, permits, worker, *lease);
        if let Err(error) = compared.await {
            tracing::warn!(
                cluster,
                %error,
                "the high-water mark of this cluster is not read yet, so it cannot show whether the database was restored"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cluster_is_reached_where_its_way_leads_somewhere() {
        let folder = tempfile::tempdir().unwrap();
        let way = |name: &str| ClusterAccess::Kubeconfig(Name::parse("access", name).unwrap());
        let there = Some(folder.path().to_owned());
        let here = Reach { in_pod: false, kubeconfig_dir: there.clone(), token_dir: there };
        assert_eq!(here.of(&way("east")).await, None, "no such file yet");
        std::fs::write(folder.path().join("east"), "").unwrap();
        std::fs::create_dir(folder.path().join("west")).unwrap();
        let east = folder.path().join("east");
        let reached = Some(Way::Cluster(Access::Kubeconfig(east.clone())));
        assert_eq!(here.of(&way("east")).await, reached);
        let project = |text: &str| ClusterAccess::parse(text).unwrap();
        let Some(Way::Project(reached)) = here.of(&project("hetzner/east")).await else {
            panic!("the token is there");
        };
        assert_eq!(reached.token, TokenFile::new(east));
        assert_eq!(here.of(&project("hetzner/west")).await, None, "a folder");
        assert_eq!(here.of(&way("west")).await, None, "a folder");
        assert_eq!(here.of(&ClusterAccess::InCluster).await, None, "in no pod");
        let pod = Reach { in_pod: true, kubeconfig_dir: None, token_dir: None };
        let reached = Some(Way::Cluster(Access::InCluster));
        assert_eq!(pod.of(&ClusterAccess::InCluster).await, reached);
        assert_eq!(pod.of(&way("east")).await, None, "no folder");
    }
}
