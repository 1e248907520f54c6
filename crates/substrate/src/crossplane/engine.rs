//! Implements the substrate port on a management cluster. This file has the
//! engine's state and its ownership checks; `observe` and `act` do the work.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use slipway_app::permits::{ActionPermits, Permit};
use slipway_app::ports::substrate::{
    Address, Error, HighWaterMark as Read, InventoryPage, InventoryRequest, Substrate,
};
use slipway_cluster::{
    Access, ApiResource, Changes, Connection, DynamicObject, ObjectRef, Reason, Version, Watch,
    WatchConfig, api_resource, object_key, require_identity,
};
use slipway_core::broker::holding::Holder;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::orphan::KeepOrder;
use slipway_core::catalog::blueprint_version::{CompositeScope, CompositeType, Engine};
use slipway_core::ids::{InstallationId, ProvisionedResourceId};
use slipway_render::{RenderedComposite, composite};

use super::high_water_mark::{HighWaterMark, SYSTEM_NAMESPACE};
use super::live_object::LiveObject;
use super::management::Verification;
use super::{FIELD_MANAGER, act, holders, inventory, observe};

/// Greatest age of the identity that a write relies on: one pass over the
/// projects of a cluster, which has a lease of twenty seconds.
pub(super) const RECENT: Duration = Duration::from_secs(20);

pub(super) type Index = slipway_cluster::Index<LiveObject>;

#[derive(Debug, Clone)]
pub struct CrossplaneConfig {
    /// The name of the cluster in the log.
    pub cluster: String,
    pub access: Access,
    /// The engine touches only objects that carry this installation.
    pub installation: InstallationId,
    /// How often each watch is compared with a list.
    pub sweep: Duration,
}

/// The engine on one cluster. Dropping it ends its watches.
#[derive(Debug)]
pub struct CrossplaneSubstrate {
    connection: Arc<Connection>,
    installation: String,
    sweep: Duration,
    changes: Arc<Changes<ProvisionedResourceId>>,
    kinds: Mutex<BTreeMap<CompositeType, Arc<Kind>>>,
    overruled: AtomicU64,
    mark: HighWaterMark,
    /// Without them every request is permitted; for tests.
    permits: Option<ActionPermits>,
    pub(super) verification: Verification,
}

/// One kind of composite and the watch over it.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) composite_type: CompositeType,
    pub(super) watch: Watch<LiveObject>,
}

impl CrossplaneSubstrate {
    /// Sends no request: an unreachable cluster must not keep a process from
    /// starting.
    pub fn new(config: CrossplaneConfig) -> Self {
        let installation = config.installation.to_string();
        Self {
            mark: HighWaterMark::new(SYSTEM_NAMESPACE, &installation, config.sweep),
            connection: Connection::new(config.access, &config.cluster),
            installation,
            sweep: config.sweep,
            changes: Arc::default(),
            kinds: Mutex::default(),
            overruled: AtomicU64::new(0),
            permits: None,
            verification: Verification::default(),
        }
    }

    /// Sets the namespace of the high-water mark.
    #[must_use]
    pub fn with_system_namespace(mut self, namespace: &str) -> Self {
        self.mark.namespace(namespace);
        self
    }

    /// Asks for a permit before each request that changes something.
    #[must_use]
    pub fn with_permits(mut self, permits: ActionPermits) -> Self {
        self.permits = Some(permits);
        self
    }

    /// Reaches the cluster by another way from the next request on.
    pub fn reach_by(&self, access: Access) {
        self.connection.reach_by(access);
    }

    /// How often an apply took fields of ours back from another field manager.
    pub fn overruled(&self) -> u64 {
        self.overruled.load(Ordering::Relaxed)
    }

    /// Number of composites in the indexes of all watches.
    pub fn watched(&self) -> usize {
        self.kinds().iter().map(|kind| kind.watch.index.len()).sum()
    }

    /// Starts to watch these kinds. The engine learns of any other kind when
    /// somebody first asks for an object of it, which after a start is too late
    /// for an inventory.
    pub fn expect_kinds<'a>(&self, kinds: impl IntoIterator<Item = &'a CompositeType>) {
        for kind in kinds {
            self.kind(kind);
        }
    }

    pub(super) fn overrules(&self) {
        self.overruled.fetch_add(1, Ordering::Relaxed);
    }

    /// The kind with its index. The first call for a kind starts its watch.
    pub(super) fn kind(&self, composite_type: &CompositeType) -> Arc<Kind> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kind) = kinds.get(composite_type) {
            return Arc::clone(kind);
        }
        let config = WatchConfig {
            resource: resource(composite_type),
            labels: self.selector(),
            sweep: self.sweep,
        };
        let (changes, connection) = (Arc::clone(&self.changes), Arc::clone(&self.connection));
        let kind = Arc::new(Kind {
            composite_type: composite_type.clone(),
            watch: Watch::start(config, changes, connection),
        });
        kinds.insert(composite_type.clone(), Arc::clone(&kind));
        kind
    }

    pub(super) fn kinds(&self) -> Vec<Arc<Kind>> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.values().cloned().collect()
    }

    pub(super) fn selector(&self) -> String {
        format!("{}={}", composite::LABEL_INSTALLATION, self.installation)
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Sends one request that changes something. An update that takes fields over
    /// is two.
    ///
    /// *Guarantees:* the high-water mark of this same cluster was compared with the
    /// database, and the mode permits the request. The permit lasts until the
    /// answer; without one, for as long as the request may land.
    pub(super) async fn permitted<T>(
        &self,
        request: impl AsyncFnOnce(&Connection) -> Result<T, slipway_cluster::Error>,
    ) -> Result<T, slipway_cluster::Error> {
        let permit = self.permit().await?;
        let answer = request(&self.connection).await;
        if !answer.as_ref().is_err_and(slipway_cluster::Error::may_land) {
            permit.answered();
        }
        answer
    }

    /// Creates an object, or updates it as it was read.
    pub(super) async fn put_applied(
        &self,
        object: &ObjectRef,
        read: Option<Version>,
        body: &Value,
    ) -> Result<DynamicObject, slipway_cluster::Error> {
        self.permitted(async |to| match &read {
            None => to.create_applied(object, body, FIELD_MANAGER).await,
            Some(read) => {
                to.update(object, read, body, FIELD_MANAGER).await.map(|updated| updated.object)
            }
        })
        .await
    }

    async fn permit(&self) -> Result<RequestPermit, slipway_cluster::Error> {
        self.mark.require_compared(&self.connection.identity_within(RECENT).await?)?;
        let permit = match &self.permits {
            None => None,
            Some(permits) => Some(permits.enter().await.map_err(|error| match error {
                Error::Withheld => slipway_cluster::Error::withheld(error.to_string()),
                error => slipway_cluster::Error::no_answer(error.to_string()),
            })?),
        };
        Ok(RequestPermit(permit))
    }

    pub(super) fn installation(&self) -> &str {
        &self.installation
    }

    /// Asks the server now whether it is the registered cluster.
    pub(super) async fn same_cluster(
        &self,
        registered: Option<&str>,
    ) -> Result<(), slipway_cluster::Error> {
        require_identity(&self.connection.identity().await?, registered)
    }

    /// Proves that the CRD of the kind exists and is not being deleted. While
    /// Kubernetes deletes a CRD it deletes its objects one by one, and each of
    /// them answers 404 before the kind itself is unknown. The CRD has its
    /// deletionTimestamp before the first object goes.
    pub(super) async fn kind_is_served(&self, kind: &CompositeType) -> Result<(), String> {
        let definition = ObjectRef {
            resource: api_resource(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                "customresourcedefinitions",
            ),
            namespace: None,
            name: format!("{}.{}", kind.plural, kind.group),
        };
        let found = self.connection.get_metadata(&definition).await;
        let problem = match found.map_err(|error| error.to_string())? {
            Some(found) if found.deletion_timestamp.is_none() => return Ok(()),
            Some(_) => "is being removed from the cluster",
            None => "is not on the cluster",
        };
        let name = definition.name;
        Err(format!("the definition {name} {problem}, so nothing is proven about its objects"))
    }

    /// The reason to leave the object alone, if another installation owns it.
    pub(super) fn foreign(&self, live: &LiveObject, shown: &str) -> Option<String> {
        (live.installation.as_deref() != Some(&*self.installation)).then(|| {
            format!(
                "the composite {shown} belongs to the installation {} and not to {}; it is left alone",
                live.installation.as_deref().unwrap_or("(none)"),
                self.installation,
            )
        })
    }

    /// The reason to leave the object alone, if another installation or another
    /// provisioned resource owns it.
    pub(super) fn another(&self, live: &LiveObject, address: &Address) -> Option<String> {
        let shown = shown(address);
        self.foreign(live, &shown).or_else(|| {
            let owner = address.provisioned_resource_id;
            (live.owner != Some(owner)).then(|| {
                let found = live.owner.map_or_else(|| "(none)".to_owned(), |id| id.to_string());
                format!(
                    "the composite {shown} belongs to the provisioned resource {found} and not to {owner}; it is left alone"
                )
            })
        })
    }

    pub(super) fn report(&self, live: &LiveObject, address: &Address) -> CompositeReport {
        match self.another(live, address) {
            Some(reason) => CompositeReport::Foreign { reason },
            None => CompositeReport::Present(Box::new(live.live())),
        }
    }
}

/// The permit for one request. Dropped without an answer, also because its sender
/// gave up, it counts on.
#[derive(Debug)]
struct RequestPermit(Option<Permit>);

impl RequestPermit {
    fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        if let Some(permit) = self.0.take() {
            permit.unanswered();
        }
    }
}

pub(super) fn failed(error: slipway_cluster::Error) -> Error {
    match error.reason() {
        Reason::Withheld => Error::Withheld,
        _ => Error::Failed(error.into_message()),
    }
}

/// The error of a write: one that nobody answered may still take effect.
pub(super) fn not_written(error: slipway_cluster::Error) -> Error {
    if error.may_land() { Error::Unanswered(error.into_message()) } else { failed(error) }
}

pub(super) fn resource(kind: &CompositeType) -> ApiResource {
    api_resource(&kind.api_version(), &kind.kind, &kind.plural)
}

/// The composite at an address, of this kind.
pub(super) fn object_of(kind: &CompositeType, address: &Address) -> ObjectRef {
    let namespaced = kind.scope == CompositeScope::Namespaced;
    ObjectRef {
        resource: resource(kind),
        namespace: namespaced.then(|| address.namespace.clone()),
        name: address.name.clone(),
    }
}

/// The address as messages show it.
pub(super) fn shown(address: &Address) -> String {
    match address.composite_type.as_ref().map(|kind| kind.scope) {
        Some(CompositeScope::Cluster) => address.name.clone(),
        _ => format!("{}/{}", address.namespace, address.name),
    }
}

pub(super) fn key_of(address: &Address) -> Box<str> {
    match address.composite_type.as_ref().map(|kind| kind.scope) {
        Some(CompositeScope::Cluster) => object_key("", &address.name),
        _ => object_key(&address.namespace, &address.name),
    }
}

#[async_trait]
impl Substrate for CrossplaneSubstrate {
    fn engine(&self) -> Engine {
        Engine::Crossplane
    }

    async fn identity(&self) -> Result<String, Error> {
        self.connection.identity().await.map_err(failed)
    }

    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        observe::observe(self, addresses).await
    }

    async fn apply(&self, rendered: &RenderedComposite) -> Result<CompositeReport, Error> {
        let cluster = self.connection.identity_within(RECENT).await.map_err(failed)?;
        require_identity(&cluster, rendered.substrate_uid()).map_err(failed)?;
        self.mark.require_compared(&cluster).map_err(failed)?;
        act::apply(self, rendered).await
    }

    async fn high_water_mark_read(&self, fresh: bool) -> Result<Read, Error> {
        self.mark.read(&self.connection, fresh).await
    }

    async fn high_water_mark_compared(&self) {
        self.mark.compared(&self.connection).await;
    }

    async fn high_water_mark_write(&self, heartbeat: i64) -> Result<(), Error> {
        self.mark.raise(&self.connection, heartbeat).await
    }

    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error> {
        let cluster = self.connection.identity_within(RECENT).await.map_err(failed)?;
        self.mark.require_compared(&cluster).map_err(failed)?;
        act::delete(self, address, uid).await
    }

    async fn holders(&self, address: &Address) -> Result<Vec<Holder>, Error> {
        holders::observe(self, address).await
    }

    async fn keep(&self, address: &Address, kept: &[KeepOrder]) -> Result<(), Error> {
        let cluster = self.connection.identity_within(RECENT).await.map_err(failed)?;
        require_identity(&cluster, address.substrate_uid.as_deref()).map_err(failed)?;
        self.mark.require_compared(&cluster).map_err(failed)?;
        holders::keep(self, kept).await
    }

    async fn inventory(&self, request: &InventoryRequest) -> Result<InventoryPage, Error> {
        inventory::page(self, request).await.map_err(Error::Failed)
    }

    async fn changed(&self) -> Vec<ProvisionedResourceId> {
        self.changes.next().await
    }
}
