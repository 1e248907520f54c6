//! An in-memory substrate that performs every action at once.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_app::ports::substrate::{Address, Error, InventoryPage, InventoryRequest, Substrate};
use slipway_core::broker::observation::{CompositeReport, LiveComposite};
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::deletion::leak::{Found, ObjectRef};
use slipway_core::ids::{GroupId, ProvisionedResourceId};
use slipway_core::secret::Secret;
use slipway_render::cloud_init::bootstrap_token_in;
use slipway_render::{RenderedComposite, composite};

/// What it keeps about its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Everything that an engine would report.
    Everything,
    /// Only the hash of each: a substrate's own memory is not part of the cost
    /// of a resource.
    Hashes,
}

#[derive(Debug)]
pub(crate) struct Instant {
    memory: Memory,
    objects: Mutex<HashMap<String, LiveComposite>>,
    hashes: Mutex<HashMap<String, String>>,
    /// The servers of each group of a workspace, by name.
    groups: Mutex<HashMap<GroupId, BTreeMap<String, ProvisionedResourceId>>>,
}

impl Instant {
    pub(crate) fn new(memory: Memory) -> Self {
        Self {
            memory,
            objects: Mutex::default(),
            hashes: Mutex::default(),
            groups: Mutex::default(),
        }
    }

    /// Lists this server with its group from now on, as if it had been applied.
    pub(crate) fn list(&self, group: GroupId, name: String, id: ProvisionedResourceId) {
        lock(&self.groups).entry(group).or_default().insert(name, id);
    }

    /// The token that the object of this name carries.
    pub(crate) fn token(&self, name: &str) -> Option<Secret> {
        lock(&self.objects).get(name)?.injected.as_ref().and_then(bootstrap_token_in)
    }

    /// Adds objects that nobody applied, with a hash that the first apply will repair.
    pub(crate) fn adopt(&self, names: impl Iterator<Item = String>) {
        let mut objects = lock(&self.objects);
        objects.extend(names.map(|name| (name.clone(), live(&name, None))));
    }

    fn report(&self, name: &str) -> CompositeReport {
        let found = match self.memory {
            Memory::Everything => lock(&self.objects).get(name).cloned(),
            // Objects that were never applied here come from the set-up.
            Memory::Hashes => Some(live(name, lock(&self.hashes).get(name).cloned())),
        };
        found.map_or(CompositeReport::Absent, |live| CompositeReport::Present(Box::new(live)))
    }
}

fn live(name: &str, owned_hash: Option<String>) -> LiveComposite {
    LiveComposite {
        uid: name.to_owned(),
        ready: true,
        failure: None,
        terminating: false,
        owned_hash: owned_hash.unwrap_or_default(),
        carried: slipway_core::nodes::token::Carried::Nothing,
        injected: None,
        evidence: json!({ "engine": "instant" }),
    }
}

fn found(group: GroupId, name: &str, id: ProvisionedResourceId) -> Found {
    Found {
        object_ref: ObjectRef { namespace: "instant".to_owned(), name: name.to_owned() },
        uid: name.to_owned(),
        provisioned_resource_id: Some(id),
        claim_token: None,
        group: Some(group),
        evidence: Value::Null,
    }
}

/// Ignores poisoning: a panic leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Substrate for Instant {
    fn engine(&self) -> Engine {
        Engine::Local
    }

    async fn identity(&self) -> Result<String, Error> {
        Ok("instant".to_owned())
    }

    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        addresses.iter().map(|address| self.report(&address.name)).collect()
    }

    async fn apply(&self, rendered: &RenderedComposite) -> Result<CompositeReport, Error> {
        let (name, object) = (rendered.name().to_owned(), rendered.expose_object());
        let owned_hash = composite::owned_hash(object);
        let seen = name.clone();
        match self.memory {
            Memory::Everything => {
                let id =
                    object["metadata"]["labels"][composite::LABEL_PROVISIONED_RESOURCE].as_str();
                if let (Some(group), Some(Ok(id))) = (composite::group(object), id.map(str::parse))
                {
                    self.list(group, name.clone(), id);
                }
                let live = LiveComposite {
                    carried: composite::carried(object),
                    injected: composite::injected(object),
                    ..live(&name, Some(owned_hash))
                };
                lock(&self.objects).insert(name, live);
            }
            Memory::Hashes => {
                lock(&self.hashes).insert(name, owned_hash);
            }
        }
        Ok(self.report(&seen))
    }

    async fn delete(&self, address: &Address, _uid: &str) -> Result<(), Error> {
        lock(&self.objects).remove(&address.name);
        lock(&self.hashes).remove(&address.name);
        for servers in lock(&self.groups).values_mut() {
            servers.remove(&address.name);
        }
        Ok(())
    }

    async fn group_inventory(
        &self,
        group: GroupId,
        request: &InventoryRequest,
    ) -> Result<InventoryPage, Error> {
        let groups = lock(&self.groups);
        let Some(servers) = groups.get(&group) else { return Ok(InventoryPage::default()) };
        let after = request.after.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let page = servers.range((after, Bound::Unbounded)).take(request.limit);
        let found: Vec<Found> = page.map(|(name, id)| found(group, name, *id)).collect();
        let last = found.last().filter(|_| found.len() == request.limit);
        let next = last.map(|found| found.object_ref.name.clone());
        Ok(InventoryPage { found, next, ..InventoryPage::default() })
    }
}
