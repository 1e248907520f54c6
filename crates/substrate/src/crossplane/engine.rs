//! The substrate port on a management cluster: what the engine is made of, and
//! whose object is whose. What it does is in `observe` and `act`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::DynamicObject;
use slipway_app::ports::substrate::{Address, Error, InventoryPage, InventoryRequest, Substrate};
use slipway_core::blueprint::{CompositeScope, CompositeType, Engine};
use slipway_core::ids::{InstallationId, ProvisionedResourceId};
use slipway_core::observation::CompositeReport;
use slipway_render::{RenderedComposite, composite};
use tokio::task::AbortHandle;

use super::access::Access;
use super::connection::Connection;
use super::fold::Entry;
use super::index::{Changes, Index, place};
use super::watch::{self, Watched};
use super::witness::{SYSTEM_NAMESPACE, Witness};
use super::{act, inventory, observe, trouble};

#[derive(Debug, Clone)]
pub struct CrossplaneConfig {
    pub access: Access,
    /// Whose objects these are; others' are not touched.
    pub installation: InstallationId,
    /// How often a list is held against each watch.
    pub sweep: Duration,
}

/// The engine on one cluster. Its watches end with it.
#[derive(Debug)]
pub struct CrossplaneSubstrate {
    connection: Arc<Connection>,
    installation: String,
    sweep: Duration,
    changes: Arc<Changes>,
    kinds: Mutex<BTreeMap<CompositeType, Arc<Kind>>>,
    overruled: AtomicU64,
    witness: Witness,
}

/// One kind of composite and the watch over it.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) composite_type: CompositeType,
    pub(super) index: Arc<Index>,
    watch: AbortHandle,
}

impl Drop for Kind {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl CrossplaneSubstrate {
    /// Asks nothing of the cluster yet: one that is away must not keep a
    /// process from starting.
    pub fn new(config: CrossplaneConfig) -> Self {
        let installation = config.installation.to_string();
        Self {
            witness: Witness::new(SYSTEM_NAMESPACE, &installation, config.sweep),
            connection: Connection::new(config.access),
            installation,
            sweep: config.sweep,
            changes: Arc::default(),
            kinds: Mutex::default(),
            overruled: AtomicU64::new(0),
        }
    }

    /// The same engine with the namespace in which this installation keeps what
    /// is its own.
    #[must_use]
    pub fn with_system_namespace(mut self, namespace: &str) -> Self {
        self.witness.namespace(namespace);
        self
    }

    /// How often another manager held a field of ours and was overruled.
    pub fn overruled(&self) -> u64 {
        self.overruled.load(Ordering::Relaxed)
    }

    /// How many composites are known from watches.
    pub fn watched(&self) -> usize {
        self.kinds().iter().map(|kind| kind.index.len()).sum()
    }

    /// Tells which kinds there may be. Others are met when they are first asked
    /// about, which after a start is too late for an inventory.
    pub fn expect_kinds<'a>(&self, kinds: impl IntoIterator<Item = &'a CompositeType>) {
        for kind in kinds {
            self.kind(kind);
        }
    }

    pub(super) fn overrules(&self) {
        self.overruled.fetch_add(1, Ordering::Relaxed);
    }

    /// The index of this kind; the watch begins with the first question.
    pub(super) fn kind(&self, composite_type: &CompositeType) -> Arc<Kind> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kind) = kinds.get(composite_type) {
            return Arc::clone(kind);
        }
        let index = Arc::new(Index::new(Arc::clone(&self.changes)));
        let watched = Watched {
            resource: watch::resource(composite_type),
            selector: self.selector(),
            sweep: self.sweep,
        };
        let keep = watch::keep(watched, Arc::clone(&index), Arc::clone(&self.connection));
        let kind = Arc::new(Kind {
            composite_type: composite_type.clone(),
            index,
            watch: tokio::spawn(keep).abort_handle(),
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

    pub(super) fn installation(&self) -> &str {
        &self.installation
    }

    pub(super) async fn api(
        &self,
        kind: &CompositeType,
        namespace: &str,
    ) -> Result<Api<DynamicObject>, String> {
        let client = self.connection.client().await?;
        let resource = watch::resource(kind);
        Ok(match kind.scope {
            CompositeScope::Namespaced => Api::namespaced_with(client, namespace, &resource),
            CompositeScope::Cluster => Api::all_with(client, &resource),
        })
    }

    pub(super) async fn everywhere(
        &self,
        kind: &CompositeType,
    ) -> Result<Api<DynamicObject>, String> {
        let client = self.connection.client().await?;
        Ok(Api::all_with(client, &watch::resource(kind)))
    }

    /// Which cluster this is. Asked now.
    pub(super) async fn cluster(&self) -> Result<String, String> {
        self.connection.identity().await
    }

    /// It is the cluster that was recorded. Asked now.
    pub(super) async fn same_cluster(&self, recorded: Option<&str>) -> Result<(), String> {
        is_recorded(&self.cluster().await?, recorded)
    }

    /// The kind is there to stay. A definition that is being removed takes its
    /// objects along one by one, and each of them answers 404 before the kind
    /// itself is unknown; it is marked before the first of them goes.
    pub(super) async fn kind_stands(&self, kind: &CompositeType) -> Result<(), String> {
        let name = format!("{}.{}", kind.plural, kind.group);
        let what = format!("read the definition {name}");
        let definitions = Api::<CustomResourceDefinition>::all(self.connection.client().await?);
        let definition = match trouble::within(definitions.get_metadata(&name)).await {
            Ok(definition) => definition,
            Err(error) => return Err(self.refused(&what, &error).await),
        };
        match definition.metadata.deletion_timestamp {
            Some(_) => Err(format!(
                "the definition {name} is being removed from the cluster, so nothing is proven about its objects"
            )),
            None => Ok(()),
        }
    }

    /// The error for people. Credentials that were refused are looked at again.
    pub(super) async fn refused(&self, what: &str, error: &kube::Error) -> String {
        if trouble::is_unauthorized(error) {
            self.connection.doubt().await;
        }
        trouble::describe(what, error)
    }

    /// Whose object this is, if it is another installation's.
    pub(super) fn foreign(&self, entry: &Entry, shown: &str) -> Option<String> {
        (entry.installation.as_deref() != Some(&*self.installation)).then(|| {
            format!(
                "the composite {shown} belongs to the installation {} and not to {}; it is left alone",
                entry.installation.as_deref().unwrap_or("(none)"),
                self.installation,
            )
        })
    }

    /// Whose object this is, if it is not the one that is asked for.
    pub(super) fn another(&self, entry: &Entry, address: &Address) -> Option<String> {
        let shown = shown(address);
        self.foreign(entry, &shown).or_else(|| {
            let owner = address.provisioned_resource_id;
            (entry.owner != Some(owner)).then(|| {
                let found = entry.owner.map_or_else(|| "(none)".to_owned(), |id| id.to_string());
                format!(
                    "the composite {shown} belongs to the provisioned resource {found} and not to {owner}; it is left alone"
                )
            })
        })
    }

    pub(super) fn report(&self, entry: &Entry, address: &Address) -> CompositeReport {
        match self.another(entry, address) {
            Some(reason) => CompositeReport::Foreign { reason },
            None => CompositeReport::Present(Box::new(entry.live())),
        }
    }
}

pub(super) fn is_recorded(found: &str, recorded: Option<&str>) -> Result<(), String> {
    match recorded {
        Some(recorded) if recorded != found => Err(format!(
            "this is another cluster: it has the identity {found}, and {recorded} was registered"
        )),
        _ => Ok(()),
    }
}

/// For people.
pub(super) fn shown(address: &Address) -> String {
    match address.composite_type.as_ref().map(|kind| kind.scope) {
        Some(CompositeScope::Cluster) => address.name.clone(),
        _ => format!("{}/{}", address.namespace, address.name),
    }
}

pub(super) fn place_of(address: &Address) -> Box<str> {
    match address.composite_type.as_ref().map(|kind| kind.scope) {
        Some(CompositeScope::Cluster) => place("", &address.name),
        _ => place(&address.namespace, &address.name),
    }
}

#[async_trait]
impl Substrate for CrossplaneSubstrate {
    fn engine(&self) -> Engine {
        Engine::Crossplane
    }

    async fn identity(&self) -> Result<String, Error> {
        self.cluster().await.map_err(Error::Failed)
    }

    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        observe::observe(self, addresses).await
    }

    async fn apply(&self, rendered: &RenderedComposite) -> Result<CompositeReport, Error> {
        act::apply(self, rendered).await
    }

    async fn witness_read(&self) -> Result<Option<i64>, Error> {
        self.witness.read(&self.connection).await.map_err(Error::Failed)
    }

    async fn witness_write(&self, beat: i64) -> Result<(), Error> {
        self.witness.write(&self.connection, beat).await.map_err(Error::Failed)
    }

    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error> {
        act::delete(self, address, uid).await
    }

    async fn inventory(&self, request: &InventoryRequest) -> Result<InventoryPage, Error> {
        inventory::page(self, request).await.map_err(Error::Failed)
    }

    async fn changed(&self) -> Vec<ProvisionedResourceId> {
        self.changes.next().await
    }
}
