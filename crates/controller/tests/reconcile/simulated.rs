//! An in-memory substrate that performs actions, or behaves as a test sets it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use slipway_app::ports::substrate::{Address, Error, InventoryPage, InventoryRequest, Substrate};
use slipway_core::broker::observation::{CompositeReport, LiveComposite};
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::deletion::leak::{Found, ObjectRef};
use slipway_core::ids::{ClaimToken, GroupId, ProvisionedResourceId};
use slipway_render::{RenderedComposite, composite};
use tokio::sync::Notify;

/// One composite.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) uid: String,
    pub(crate) object: Value,
    pub(crate) ready: bool,
    pub(crate) failure: Option<String>,
    pub(crate) terminating: bool,
}

/// How the substrate behaves from now on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behaviour {
    /// Reads fail.
    pub(crate) unreadable: bool,
    /// Applies fail before they do anything.
    pub(crate) apply_fails: bool,
    /// Deletes fail before they do anything.
    pub(crate) delete_fails: bool,
    /// Every action is performed twice.
    pub(crate) twice: bool,
    /// Objects become ready without another apply.
    pub(crate) comes_up: bool,
}

/// An event in the life of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Performed {
    Created,
    Updated,
    Deleted,
    /// By somebody else.
    Removed,
}

#[derive(Default)]
pub(crate) struct Simulated {
    objects: Mutex<BTreeMap<String, Object>>,
    behaviour: Mutex<Behaviour>,
    journal: Mutex<Vec<(String, Performed)>>,
    /// Source of uids: a recreated object is another object.
    made: AtomicU64,
    /// Changes that a watch has not reported yet.
    changed: Mutex<Vec<ProvisionedResourceId>>,
    arrived: Notify,
    /// The simulated engine; the local one by default.
    engine: Option<Engine>,
    interference: Mutex<Option<(Moment, BoxFuture<'static, ()>)>>,
}

/// When something interferes with a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The batch has read the mode, and has decided nothing yet.
    Observe,
    /// The intent is recorded. The engine notices that the mode changed, and
    /// sends no request.
    Apply,
    /// The apply was sent, and its answer is lost.
    Answer,
    /// The placement loop lists what is in a namespace before it deletes it.
    Residents,
}

impl std::fmt::Debug for Simulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Simulated")
    }
}

impl Simulated {
    /// Runs this at the next such moment.
    pub(crate) fn interfere(&self, moment: Moment, what: BoxFuture<'static, ()>) {
        *self.interference.lock().unwrap() = Some((moment, what));
    }

    pub(crate) async fn reach(&self, moment: Moment) -> bool {
        let what = self.interference.lock().unwrap().take_if(|(at, _)| *at == moment);
        let Some((_, what)) = what else { return false };
        what.await;
        true
    }

    pub(crate) fn of(engine: Engine) -> Self {
        Self { engine: Some(engine), ..Self::default() }
    }

    /// The names of the objects in a namespace.
    pub(crate) fn names_in(&self, namespace: &str) -> Vec<String> {
        let objects = self.objects.lock().unwrap();
        let inside =
            objects.iter().filter(|(_, found)| found.object["metadata"]["namespace"] == namespace);
        inside.map(|(name, _)| name.clone()).collect()
    }

    /// How many objects carry the label of this group of servers.
    pub(crate) fn count_of(&self, group: GroupId) -> usize {
        let objects = self.objects.lock().unwrap();
        objects.values().filter(|found| composite::group(&found.object) == Some(group)).count()
    }

    pub(crate) fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    pub(crate) fn object(&self, name: &str) -> Option<Object> {
        self.objects.lock().unwrap().get(name).cloned()
    }

    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Object)) {
        change(self.objects.lock().unwrap().get_mut(name).expect("the object exists"));
    }

    /// Reports a change of this attempt's object, as a watch would.
    pub(crate) fn say_changed(&self, attempt: ProvisionedResourceId) {
        self.changed.lock().unwrap().push(attempt);
        self.arrived.notify_one();
    }

    /// Adds an object that nobody applied.
    pub(crate) fn put(&self, name: &str, object: Object) {
        self.objects.lock().unwrap().insert(name.to_owned(), object);
    }

    /// Removes an object without the control plane.
    pub(crate) fn remove(&self, name: &str) {
        self.objects.lock().unwrap().remove(name).expect("the object existed");
        self.note(name, Performed::Removed);
    }

    /// A late worker makes it again, as it was when that worker decided.
    pub(crate) fn apply_late(&self, name: &str, object: &Object) {
        let uid = format!("uid-{}", self.made.fetch_add(1, Ordering::Relaxed));
        let late = Object { uid, ..object.clone() };
        let before = self.objects.lock().unwrap().insert(name.to_owned(), late);
        assert!(before.is_none(), "{name} was gone");
        self.note(name, Performed::Created);
    }

    /// Our actions, in order: `apply <name>` and `delete <name>`.
    pub(crate) fn journal(&self) -> Vec<String> {
        let line = |(name, performed): &(String, Performed)| match performed {
            Performed::Created | Performed::Updated => Some(format!("apply {name}")),
            Performed::Deleted => Some(format!("delete {name}")),
            Performed::Removed => None,
        };
        self.journal.lock().unwrap().iter().filter_map(line).collect()
    }

    /// The events of the objects of this name, in order.
    pub(crate) fn performed(&self, name: &str) -> Vec<Performed> {
        let journal = self.journal.lock().unwrap();
        journal.iter().filter(|(of, _)| of == name).map(|(_, performed)| *performed).collect()
    }

    fn note(&self, name: &str, performed: Performed) {
        self.journal.lock().unwrap().push((name.to_owned(), performed));
    }

    fn apply_once(&self, rendered: &RenderedComposite) -> Result<(), Error> {
        let comes_up = self.behaviour.lock().unwrap().comes_up;
        let mut objects = self.objects.lock().unwrap();
        let found = objects.get(rendered.name());
        // As an engine must: a late worker does not overwrite what its successor wrote.
        let ours = rendered.claim_token();
        let written = found.and_then(|object| composite::claim_token(&object.object));
        if let Some(found) = written.filter(|found: &ClaimToken| found.0 > ours.0) {
            return Err(Error::Superseded { ours, found });
        }
        let performed = if found.is_some() { Performed::Updated } else { Performed::Created };
        let object = objects.entry(rendered.name().to_owned()).or_insert_with(|| Object {
            uid: format!("uid-{}", self.made.fetch_add(1, Ordering::Relaxed)),
            object: Value::Null,
            ready: comes_up,
            failure: None,
            terminating: false,
        });
        object.object = rendered.expose_object().clone();
        self.note(rendered.name(), performed);
        Ok(())
    }

    fn delete_once(&self, address: &Address, uid: &str) -> Result<(), Error> {
        let mut objects = self.objects.lock().unwrap();
        match objects.get(&address.name) {
            None => Ok(()),
            Some(object) if object.uid != uid => Err(Error::Conflict("another object".to_owned())),
            Some(_) => {
                objects.remove(&address.name);
                self.note(&address.name, Performed::Deleted);
                Ok(())
            }
        }
    }
}

impl Simulated {
    fn report(&self, name: &str) -> CompositeReport {
        match self.object(name) {
            _ if self.behaviour.lock().unwrap().unreadable => {
                CompositeReport::Unknown { reason: "connection refused".to_owned() }
            }
            None => CompositeReport::Absent,
            Some(found) => CompositeReport::Present(Box::new(LiveComposite {
                uid: found.uid,
                ready: found.ready,
                failure: found.failure,
                terminating: found.terminating,
                owned_hash: composite::owned_hash(&found.object),
                carried: composite::carried(&found.object),
                injected: composite::injected(&found.object),
                evidence: json!({ "simulated": true }),
            })),
        }
    }
}

impl Simulated {
    /// The next of the objects that are wanted.
    fn page(
        &self,
        request: &InventoryRequest,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<InventoryPage, Error> {
        if self.behaviour.lock().unwrap().unreadable {
            return Err(Error::Failed("connection refused".to_owned()));
        }
        let objects = self.objects.lock().unwrap();
        let mut rest = objects
            .iter()
            .filter(|(name, found)| Some(*name) > request.after.as_ref() && wanted(&found.object));
        let Some((name, found)) = rest.next() else {
            return Ok(InventoryPage::default());
        };
        let text = |pointer: &str| found.object.pointer(pointer).and_then(Value::as_str);
        let found = Found {
            object_ref: ObjectRef {
                namespace: text("/metadata/namespace").unwrap_or_default().to_owned(),
                name: name.clone(),
            },
            uid: found.uid.clone(),
            provisioned_resource_id: text("/metadata/labels/slipway.dev~1provisioned-resource")
                .and_then(|id| id.parse().ok()),
            claim_token: composite::claim_token(&found.object),
            group: composite::group(&found.object),
            evidence: json!({ "simulated": true }),
        };
        let next = rest.next().map(|_| name.clone());
        Ok(InventoryPage { found: vec![found], next, ..InventoryPage::default() })
    }
}

#[async_trait]
impl Substrate for Simulated {
    fn engine(&self) -> Engine {
        self.engine.unwrap_or(Engine::Local)
    }

    async fn identity(&self) -> Result<String, Error> {
        Ok("simulated".to_owned())
    }

    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        self.reach(Moment::Observe).await;
        addresses.iter().map(|address| self.report(&address.name)).collect()
    }

    async fn apply(&self, rendered: &RenderedComposite) -> Result<CompositeReport, Error> {
        if self.reach(Moment::Apply).await {
            return Err(Error::Withheld);
        }
        if self.reach(Moment::Answer).await {
            return Err(Error::Unanswered("the answer was lost".to_owned()));
        }
        let behaviour = *self.behaviour.lock().unwrap();
        if behaviour.apply_fails {
            return Err(Error::Failed("no room".to_owned()));
        }
        self.apply_once(rendered)?;
        if behaviour.twice {
            self.apply_once(rendered)?;
        }
        Ok(self.report(rendered.name()))
    }

    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error> {
        let behaviour = *self.behaviour.lock().unwrap();
        if behaviour.delete_fails {
            return Err(Error::Failed("forbidden".to_owned()));
        }
        self.delete_once(address, uid)?;
        if behaviour.twice {
            self.delete_once(address, uid)?;
        }
        Ok(())
    }

    async fn changed(&self) -> Vec<ProvisionedResourceId> {
        loop {
            let taken = std::mem::take(&mut *self.changed.lock().unwrap());
            if !taken.is_empty() {
                return taken;
            }
            self.arrived.notified().await;
        }
    }

    /// A page has one object, so that every scan pages.
    async fn inventory(&self, request: &InventoryRequest) -> Result<InventoryPage, Error> {
        self.page(request, |_| true)
    }

    /// Its pages are as short.
    async fn group_inventory(
        &self,
        group: GroupId,
        request: &InventoryRequest,
    ) -> Result<InventoryPage, Error> {
        self.page(request, |object| composite::group(object) == Some(group))
    }
}
