//! The substrate port on a management cluster. Reads come from the index; an
//! absence is asked for once more, of the server itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::DynamicObject as Object;
use serde_json::json;
use slipway_app::ports::substrate::{Address, Error, InventoryPage, InventoryRequest, Substrate};
use slipway_core::blueprint::{CompositeScope, CompositeType, Engine};
use slipway_core::ids::{InstallationId, ProvisionedResourceId};
use slipway_core::observation::CompositeReport;
use slipway_render::RenderedComposite;
use slipway_render::{composite, injection};
use tokio::task::AbortHandle;

use super::access::Access;
use super::connection::Connection;
use super::fold::Entry;
use super::index::{Changes, Index, Standing, place};
use super::watch::{self, Watched};
use super::{FIELD_MANAGER, inventory, trouble};

/// How long an observation waits for the first list of a kind.
const FIRST_LIST: Duration = Duration::from_secs(3);

/// Questions to one server at a time, of one observation.
const QUESTIONS: usize = 16;

/// How often our finalizer is taken off again after somebody else wrote in
/// between.
const RETRIES: usize = 4;

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
        Self {
            connection: Connection::new(config.access),
            installation: config.installation.to_string(),
            sweep: config.sweep,
            changes: Arc::default(),
            kinds: Mutex::default(),
            overruled: AtomicU64::new(0),
        }
    }

    /// How often another manager held a field of ours and was overruled.
    pub fn overruled(&self) -> u64 {
        self.overruled.load(Ordering::Relaxed)
    }

    /// The index of this kind; the watch begins with the first question.
    fn kind(&self, composite_type: &CompositeType) -> Arc<Kind> {
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

    async fn api(
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

    /// It is the cluster that was recorded. Asked now.
    pub(super) async fn same_cluster(&self, recorded: Option<&str>) -> Result<(), String> {
        let found = self.connection.identity().await?;
        match recorded {
            Some(recorded) if recorded != found => Err(format!(
                "this is another cluster: it has the identity {found}, and {recorded} was registered"
            )),
            _ => Ok(()),
        }
    }

    /// Whose object this is, if it is not the one that is asked for.
    fn foreign(&self, entry: &Entry, shown: &str, owner: ProvisionedResourceId) -> Option<String> {
        if entry.installation.as_deref() != Some(&*self.installation) {
            return Some(format!(
                "the composite {shown} belongs to the installation {} and not to {}; it is left alone",
                entry.installation.as_deref().unwrap_or("(none)"),
                self.installation,
            ));
        }
        (entry.owner != Some(owner)).then(|| {
            let found = entry.owner.map_or_else(|| "(none)".to_owned(), |id| id.to_string());
            format!(
                "the composite {shown} belongs to the provisioned resource {found} and not to {owner}; it is left alone"
            )
        })
    }

    fn report(&self, entry: &Entry, address: &Address) -> CompositeReport {
        match self.foreign(entry, &shown(address), address.provisioned_resource_id) {
            Some(reason) => CompositeReport::Foreign { reason },
            None => CompositeReport::Present(Box::new(entry.live())),
        }
    }

    /// What the index knows; `None` where the server has to be asked.
    async fn known(&self, address: &Address) -> Option<CompositeReport> {
        let kind = self.kind(address.composite_type.as_ref()?);
        let mut standings = kind.index.standings();
        let settled = standings.wait_for(|standing| *standing != Standing::Starting);
        // One that does not come is asked for by itself.
        tokio::time::timeout(FIRST_LIST, settled).await.ok()?.ok()?;
        if kind.index.standing() != Standing::Current {
            return None;
        }
        let entry = kind.index.get(&place_of(address))?;
        Some(self.report(&entry, address))
    }

    /// Asks the server. Absent here means that it said so, of a kind that it
    /// knows; which server it was is asked by the caller.
    async fn ask(&self, address: &Address) -> Result<CompositeReport, Asked> {
        let Some(kind) = &address.composite_type else {
            return self.ask_any_kind(address).await;
        };
        let api = self.api(kind, &address.namespace).await.map_err(Asked::silent)?;
        match api.get(&address.name).await {
            Ok(object) => Ok(match Entry::of(&object) {
                Some(entry) => {
                    let report = self.report(&entry, address);
                    self.kind(kind).index.brought(place_of(address), entry);
                    report
                }
                None => unknown(format!("the composite {} has no uid", shown(address))),
            }),
            Err(error) if trouble::is_gone(&error, &kind.plural, &address.name) => {
                Ok(CompositeReport::Absent)
            }
            Err(error) => {
                Err(self.asked(&format!("read {} {}", kind.kind, shown(address)), &error).await)
            }
        }
    }

    /// An object whose kind is not known is looked for among all kinds that
    /// this engine has met. It is absent if it is none of any of them.
    async fn ask_any_kind(&self, address: &Address) -> Result<CompositeReport, Asked> {
        for kind in self.kinds() {
            let address =
                Address { composite_type: Some(kind.composite_type.clone()), ..address.clone() };
            match Box::pin(self.ask(&address)).await? {
                CompositeReport::Absent => {}
                report => return Ok(report),
            }
        }
        Ok(unknown(format!("the kind of the object {} is not known", shown(address))))
    }

    async fn asked(&self, what: &str, error: &kube::Error) -> Asked {
        if trouble::is_unauthorized(error) {
            self.connection.doubt().await;
        }
        Asked { problem: trouble::describe(what, error), silent: trouble::is_silence(error) }
    }

    /// Asks about each, and answers in their order; once the server does not
    /// answer, it is asked no more.
    async fn ask_all(&self, addresses: &[&Address]) -> Vec<CompositeReport> {
        let silence = Mutex::default();
        let questions: Vec<_> =
            addresses.iter().map(|address| self.ask_unless(&silence, address)).collect();
        stream::iter(questions).buffered(QUESTIONS).collect().await
    }

    async fn ask_unless(
        &self,
        silence: &Mutex<Option<String>>,
        address: &Address,
    ) -> CompositeReport {
        let heard = || silence.lock().unwrap_or_else(PoisonError::into_inner);
        let before = heard().clone();
        if let Some(problem) = before {
            return unknown(problem);
        }
        self.ask(address).await.unwrap_or_else(|asked| {
            if asked.silent {
                *heard() = Some(asked.problem.clone());
            }
            unknown(asked.problem)
        })
    }

    /// Where a rendered composite goes, by what it says of itself.
    fn address_of(rendered: &RenderedComposite) -> Result<Address, Error> {
        let labels = &rendered.expose_object()["metadata"]["labels"];
        let owner = labels[composite::LABEL_PROVISIONED_RESOURCE].as_str();
        let owner = owner.and_then(|text| text.parse().ok()).ok_or_else(|| {
            let name = rendered.name();
            Error::Failed(format!("the composite {name} names no provisioned resource"))
        })?;
        Ok(Address {
            provisioned_resource_id: owner,
            namespace: rendered.namespace().to_owned(),
            name: rendered.name().to_owned(),
            composite_type: rendered.composite_type().cloned(),
            substrate_uid: None,
        })
    }

    /// Applies, and overrules whoever else holds a field of ours.
    async fn patch(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        body: &serde_json::Value,
    ) -> Result<Object, kube::Error> {
        let parameters = PatchParams::apply(FIELD_MANAGER);
        let refused = match api.patch(name, &parameters, &Patch::Apply(body)).await {
            Ok(object) => return Ok(object),
            Err(error) => error,
        };
        let Some(fields) = trouble::conflicting_fields(&refused) else {
            return Err(refused);
        };
        tracing::info!(name, ?fields, "another manager holds fields of ours; it is overruled");
        self.overruled.fetch_add(1, Ordering::Relaxed);
        api.patch(name, &parameters.force(), &Patch::Apply(body)).await
    }

    /// Takes our finalizer off what is terminating, so that it can go.
    async fn let_go(
        &self,
        api: &Api<DynamicObject>,
        address: &Address,
        mut object: Object,
    ) -> Result<(), Error> {
        let what = format!("release {}", shown(address));
        for _ in 0..RETRIES {
            let finalizers = object.metadata.finalizers.as_deref().unwrap_or_default();
            if !finalizers.iter().any(|name| name == composite::FINALIZER_DRAIN) {
                return Ok(());
            }
            let others: Vec<_> =
                finalizers.iter().filter(|name| *name != composite::FINALIZER_DRAIN).collect();
            let body = json!({ "metadata": {
                "uid": object.metadata.uid,
                "resourceVersion": object.metadata.resource_version,
                "finalizers": others,
            } });
            let parameters = PatchParams {
                field_manager: Some(FIELD_MANAGER.to_owned()),
                ..PatchParams::default()
            };
            let refused = match api.patch(&address.name, &parameters, &Patch::Merge(&body)).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            if !trouble::is_conflict(&refused) {
                return self.unless_gone(address, &what, &refused).await;
            }
            object = match api.get(&address.name).await {
                Ok(object) if object.metadata.uid == object_uid(&body) => object,
                // Gone, and something else is there.
                Ok(_) => return Ok(()),
                Err(error) => return self.unless_gone(address, &what, &error).await,
            };
        }
        Err(Error::Failed(format!(
            "could not {what}: somebody else keeps writing it; it is tried again"
        )))
    }

    async fn unless_gone(
        &self,
        address: &Address,
        what: &str,
        error: &kube::Error,
    ) -> Result<(), Error> {
        let plural = address.composite_type.as_ref().map_or("", |kind| &kind.plural);
        if trouble::is_gone(error, plural, &address.name) {
            return Ok(());
        }
        Err(Error::Failed(self.asked(what, error).await.problem))
    }
}

fn object_uid(body: &serde_json::Value) -> Option<String> {
    body["metadata"]["uid"].as_str().map(str::to_owned)
}

/// Why a question has no answer.
struct Asked {
    problem: String,
    /// The server did not answer at all.
    silent: bool,
}

impl Asked {
    fn silent(problem: String) -> Self {
        Self { problem, silent: true }
    }
}

fn unknown(reason: String) -> CompositeReport {
    CompositeReport::Unknown { reason }
}

/// For people.
fn shown(address: &Address) -> String {
    format!("{}/{}", address.namespace, address.name)
}

fn place_of(address: &Address) -> Box<str> {
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
        self.connection.identity().await.map_err(Error::Failed)
    }

    /// *Expected flow:* what the index has is answered from it → the rest is
    /// asked of the server → if anything is absent, the server is asked which
    /// cluster it is.
    /// *Guarantees:* Absent only from a server that knows the kind, on the
    /// cluster that was registered, by its own word of just now.
    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        let mut reports: Vec<Option<CompositeReport>> = Vec::with_capacity(addresses.len());
        for address in addresses {
            reports.push(self.known(address).await);
        }
        let open: Vec<_> = (0..addresses.len()).filter(|at| reports[*at].is_none()).collect();
        let asked: Vec<_> = open.iter().map(|at| &addresses[*at]).collect();
        for (at, report) in open.iter().zip(self.ask_all(&asked).await) {
            reports[*at] = Some(report);
        }
        let mut proof = None;
        let mut answers = Vec::with_capacity(addresses.len());
        for (report, address) in reports.into_iter().zip(addresses) {
            let report = report.unwrap_or_else(|| unknown("it was not asked about".to_owned()));
            answers.push(match report {
                CompositeReport::Absent => {
                    let recorded = address.substrate_uid.as_deref();
                    if proof.is_none() {
                        proof = Some(self.same_cluster(recorded).await);
                    }
                    match proof.as_ref() {
                        Some(Err(problem)) => unknown(problem.clone()),
                        _ => CompositeReport::Absent,
                    }
                }
                report => report,
            });
        }
        answers
    }

    /// *Expected flow:* look up → leave alone what is another's, terminating,
    /// newer, or already so → server-side apply, over other managers if need be.
    /// *Guarantees:* an object that was made anew since it was looked up is not
    /// written (its uid is in the body).
    async fn apply(&self, rendered: &RenderedComposite) -> Result<CompositeReport, Error> {
        let address = Self::address_of(rendered)?;
        let kind = address.composite_type.as_ref().ok_or_else(|| no_type(&address))?;
        let shown = shown(&address);
        let mut body = rendered.expose_object().clone();
        let watched = self.kind(kind);
        let index = &watched.index;
        if let Some(live) = index.get(&place_of(&address)) {
            if let Some(reason) = self.foreign(&live, &shown, address.provisioned_resource_id) {
                return Err(Error::Conflict(reason));
            }
            let ours = rendered.claim_token();
            if let Some(found) = live.claim_token.filter(|found| *found > ours) {
                return Err(Error::Superseded { ours, found });
            }
            if live.is_terminating() {
                return Err(Error::Conflict(format!(
                    "the composite {shown} is being deleted; apply again when it is gone"
                )));
            }
            let unchanged = live.owned_hash() == rendered.owned_hash()
                && live.carried() == injection::carried(&body)
                && live.finalizers.iter().any(|name| **name == *composite::FINALIZER_DRAIN);
            if unchanged {
                return Ok(CompositeReport::Present(Box::new(live.live())));
            }
            body["metadata"]["uid"] = json!(live.uid);
        }
        let api = self.api(kind, &address.namespace).await.map_err(Error::Failed)?;
        match self.patch(&api, &address.name, &body).await {
            Ok(object) => {
                let entry = Entry::of(&object).ok_or_else(|| {
                    Error::Failed(format!("the composite {shown} was answered without a uid"))
                })?;
                let report = self.report(&entry, &address);
                index.brought(place_of(&address), entry);
                Ok(report)
            }
            Err(error) if trouble::is_conflict(&error) => Err(Error::Conflict(trouble::describe(
                &format!("apply {} {shown}", kind.kind),
                &error,
            ))),
            Err(error) => {
                let what = format!("apply {} {shown}", kind.kind);
                Err(Error::Failed(self.asked(&what, &error).await.problem))
            }
        }
    }

    /// *Expected flow:* delete under the uid → take our finalizer off. What
    /// other finalizers wait for goes on by itself.
    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error> {
        let kind = address.composite_type.as_ref().ok_or_else(|| no_type(address))?;
        self.same_cluster(address.substrate_uid.as_deref()).await.map_err(Error::Failed)?;
        let api = self.api(kind, &address.namespace).await.map_err(Error::Failed)?;
        let what = format!("delete {} {}", kind.kind, shown(address));
        let known = self.kind(kind).index.get(&place_of(address));
        if let Some(known) = known.filter(|known| *known.uid == *uid && known.is_terminating())
            && !known.finalizers.iter().any(|name| **name == *composite::FINALIZER_DRAIN)
        {
            // Told already, and released: the rest is not ours to hurry.
            return Ok(());
        }
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let parameters = DeleteParams::background().preconditions(preconditions);
        match api.delete(&address.name, &parameters).await {
            Ok(answer) => match answer.left() {
                Some(object) if object.metadata.uid.as_deref() == Some(uid) => {
                    self.let_go(&api, address, object).await
                }
                _ => Ok(()),
            },
            Err(error) if trouble::is_conflict(&error) => {
                Err(Error::Conflict(trouble::describe(&what, &error)))
            }
            Err(error) => self.unless_gone(address, &what, &error).await,
        }
    }

    async fn inventory(&self, request: &InventoryRequest) -> Result<InventoryPage, Error> {
        inventory::page(self, request).await.map_err(Error::Failed)
    }

    async fn changed(&self) -> Vec<ProvisionedResourceId> {
        self.changes.next().await
    }
}

fn no_type(address: &Address) -> Error {
    Error::Failed(format!(
        "the blueprint of {} has no composite type; publish a version of it from its XRD",
        shown(address)
    ))
}
