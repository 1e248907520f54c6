//! The backend itself: the connection, the kinds that the server knows, and who owns
//! what it deploys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use slipway_cluster::{
    Access, ApiResource, Connection, Error as ClusterError, ObjectMeta, ObjectRef, Reason, Version,
    api_resource,
};
use tokio::time::Instant;

use super::super::backend::{Backend, Contact, Fault, Found, Health, Owner, Removal, Stamp};
use super::super::error::Error;
use super::super::inventory::{Entry, Inventory, Reference};
use super::super::manifest::Manifest;

/// Who we are to the API server.
pub(super) const FIELD_MANAGER: &str = "slipway-agent";

/// Parallel requests to the API server.
const AT_ONCE: usize = 8;

/// The namespace of the inventory, unless the agent runs in a pod or is told another.
const DEFAULT_NAMESPACE: &str = "slipway-agent";

/// Where a pod finds the name of its namespace.
const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// A kind as the server serves it.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    pub(super) resource: ApiResource,
    pub(super) is_namespaced: bool,
}

#[derive(Debug)]
pub(crate) struct ClusterBackend {
    pub(super) connection: Arc<Connection>,
    pub(super) namespace: String,
    /// Of everything that it deploys; known once the inventory was read.
    pub(super) owner: Option<Owner>,
    /// The cluster that the inventory was read from.
    pub(super) identity: Option<String>,
    /// By version and kind.
    pub(super) kinds: BTreeMap<(String, String), Kind>,
    /// The ConfigMaps of the inventory as they were read or written.
    pub(super) versions: BTreeMap<String, Version>,
}

impl ClusterBackend {
    pub(crate) fn new(access: Access, namespace: Option<String>) -> Result<Self, Error> {
        let namespace = match (namespace, &access) {
            (Some(namespace), _) => namespace,
            (None, Access::Kubeconfig(_)) => DEFAULT_NAMESPACE.to_owned(),
            (None, Access::InCluster) => {
                let what = "the namespace of the pod";
                let text = std::fs::read_to_string(POD_NAMESPACE)
                    .map_err(|source| Error::File { what, path: POD_NAMESPACE.into(), source })?;
                text.trim().to_owned()
            }
        };
        Ok(Self {
            connection: Connection::new(access, "of this agent"),
            namespace,
            owner: None,
            identity: None,
            kinds: BTreeMap::new(),
            versions: BTreeMap::new(),
        })
    }

    pub(super) fn owner(&self) -> Result<&Owner, Fault> {
        self.owner.as_ref().ok_or_else(|| Fault::Moved("the inventory was not read".to_owned()))
    }

    /// The kind of a manifest; `None` if the server does not serve it.
    pub(super) async fn kind(
        &mut self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Kind>, Fault> {
        let key = (api_version.to_owned(), kind.to_owned());
        if let Some(known) = self.kinds.get(&key) {
            return Ok(Some(known.clone()));
        }
        let found = self.connection.kind_named(api_version, kind).await.map_err(fault)?;
        let found = found.map(|(resource, is_namespaced)| Kind { resource, is_namespaced });
        if let Some(found) = &found {
            self.kinds.insert(key, found.clone());
        }
        Ok(found)
    }

    /// After a refusal asks anew which kinds there are: a definition may have been replaced.
    fn relearn_after<T>(&mut self, done: Result<T, Fault>) -> Result<T, Fault> {
        done.inspect_err(|_| self.kinds.clear())
    }

    /// The metadata of these objects, in their order; `None` for what is not there.
    /// Where the server does not know the kind, `is_new` says whether that means that
    /// there is none.
    pub(super) async fn metadata(
        &self,
        references: &[&Reference],
        is_new: impl Fn(&Reference) -> bool,
    ) -> Result<Vec<Option<ObjectMeta>>, Fault> {
        let asked = references.iter().map(|reference| {
            let object = object_ref(reference);
            async move { self.connection.get_metadata(&object).await }
        });
        let answers = at_once(asked.collect()).await;
        let found = references.iter().zip(answers).map(|(reference, answer)| match answer {
            Err(error) if *error.reason() == Reason::NotFound && is_new(reference) => Ok(None),
            answer => answer.map_err(fault),
        });
        found.collect()
    }

    /// Fails if the cluster is not the one that the inventory was read from: then an
    /// object that was not found there proves nothing.
    pub(super) async fn require_same_cluster(&self) -> Result<(), Fault> {
        let found = self.connection.identity().await.map_err(fault)?;
        match self.identity.as_ref() == Some(&found) {
            true => Ok(()),
            false => Err(Fault::Moved("another cluster answers than before".to_owned())),
        }
    }
}

/// Runs requests, some at a time; their answers in order.
pub(super) async fn at_once<F: Future>(requests: Vec<F>) -> Vec<F::Output> {
    stream::iter(requests).buffered(AT_ONCE).collect().await
}

/// The address of an object.
pub(super) fn object_ref(reference: &Reference) -> ObjectRef {
    ObjectRef {
        resource: api_resource(&reference.api_version, &reference.kind, &reference.plural),
        namespace: reference.namespace.clone(),
        name: reference.name.clone(),
    }
}

/// An error of the API server, as the core sees it.
pub(super) fn fault(error: ClusterError) -> Fault {
    match error.is_outage() {
        true => Fault::Unreachable(error.into_message()),
        false => Fault::Refused(error.into_message()),
    }
}

impl Backend for ClusterBackend {
    const HAS_CLUSTER: bool = true;
    /// With the question for its identity an idle pass makes three requests.
    const DRIFT_CHECKS: usize = 2;

    fn name(&self) -> String {
        format!("the namespace {} of the cluster", self.namespace)
    }

    async fn contact(&mut self) -> Result<Contact, Fault> {
        let asked = Instant::now();
        let identity = self.connection.identity().await.map_err(|error| {
            // Without it nothing is known about the cluster, whatever the reason.
            Fault::Unreachable(error.into_message())
        })?;
        let latency: Duration = asked.elapsed();
        let is_new = self.identity.as_ref() != Some(&identity);
        if is_new {
            self.kinds.clear();
            self.versions.clear();
            self.owner = None;
            self.identity = Some(identity);
        }
        Ok(Contact { latency: Some(latency), is_new })
    }

    async fn load(&mut self, owner: &Owner) -> Result<Inventory, Fault> {
        self.inventory_read(owner).await
    }

    async fn save(&mut self, stack: &str, entry: &Entry) -> Result<(), Fault> {
        self.inventory_write(stack, entry).await
    }

    async fn forget(&mut self, stack: &str) -> Result<(), Fault> {
        self.inventory_remove(stack).await
    }

    async fn resolve(&mut self, manifests: Vec<Manifest>) -> Result<Vec<Manifest>, Fault> {
        self.resolve_all(manifests).await
    }

    /// What was read of each object.
    type Prepared = Vec<Option<ObjectMeta>>;

    async fn prepare(
        &mut self,
        stamp: &Stamp<'_>,
        manifests: &[Manifest],
        known: &[Reference],
    ) -> Result<Self::Prepared, Fault> {
        let tried = self.try_all(stamp, manifests, known).await;
        self.relearn_after(tried)
    }

    async fn apply(
        &mut self,
        stamp: &Stamp<'_>,
        manifests: &[Manifest],
        known: &[Reference],
        prepared: Self::Prepared,
    ) -> Result<Vec<Reference>, Fault> {
        let applied = self.apply_all(stamp, manifests, known, prepared).await;
        self.relearn_after(applied)
    }

    async fn find(&mut self, stack: &str) -> Result<Found, Fault> {
        self.find_all(stack).await
    }

    async fn remove(&mut self, stack: &str, references: &[Reference]) -> Result<Removal, Fault> {
        self.remove_all(stack, references).await
    }

    async fn release(&mut self, stack: &str, references: &[Reference]) -> Result<(), Fault> {
        self.release_all(stack, references).await
    }

    async fn drift(&mut self, reference: &Reference) -> Result<Option<String>, Fault> {
        self.drift_of(reference).await
    }

    fn has_health(&self, reference: &Reference) -> bool {
        super::health::is_workload(reference)
    }

    async fn health(&mut self, references: &[Reference]) -> Result<Health, Fault> {
        self.health_of(references).await
    }
}
