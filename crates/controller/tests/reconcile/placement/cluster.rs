//! An in-memory cluster with the shared objects of projects. It refuses what an
//! API server would refuse, and notes violations.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use slipway_app::placement::management::ClusterFacts;
use slipway_app::ports::Management;
use slipway_app::ports::substrate::Error;
use slipway_core::catalog::blueprint_version::CompositeType;
use slipway_core::placement::cluster::ClusterAssignment;
use slipway_core::placement::rules::namespace::Removal;
use slipway_core::placement::rules::residents::Resident;
use slipway_core::placement::shared_objects::{Seen, SharedKey, SharedKind, SharedObjects};
use slipway_render::composite;
use slipway_render::shared::{self, SharedObject};
use tokio::sync::Notify;

use super::defined::Defined;
use crate::simulated::{Moment, Simulated};

/// The fault of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    FailBefore,
    /// It is done, and only the answer is lost.
    FailAfter,
    CrashBefore,
    CrashAfter,
}

#[derive(Debug, Default)]
pub(super) struct Cluster {
    pub(super) identity: String,
    /// The composites of the resources there.
    pub(super) composites: Arc<Simulated>,
    /// Whether calls never return.
    pub(super) hangs: AtomicBool,
    objects: Mutex<BTreeMap<SharedKey, Seen>>,
    /// How often each object was made.
    made: Mutex<BTreeMap<SharedKey, u32>>,
    violations: Mutex<Vec<String>>,
    /// The installed definitions of blueprints.
    pub(super) defined: Mutex<Defined>,
    calls: AtomicU64,
    versions: AtomicU64,
    planned: Mutex<Option<(u64, Fault)>>,
    /// Signals that the calling process is dead.
    pub(super) crashed: Notify,
}

impl Cluster {
    pub(super) fn new(identity: &str, composites: Arc<Simulated>) -> Self {
        Self { identity: identity.to_owned(), composites, ..Self::default() }
    }

    /// Plans this fault for the call of this number, counted from one.
    pub(super) fn plan(&self, call: u64, fault: Fault) {
        *self.planned.lock().unwrap() = Some((call, fault));
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    pub(super) fn objects(&self) -> BTreeSet<SharedKey> {
        self.objects.lock().unwrap().keys().cloned().collect()
    }

    /// Violations so far.
    pub(super) fn violations(&self) -> Vec<String> {
        let mut found = self.violations.lock().unwrap().clone();
        let made = self.made.lock().unwrap();
        let twice = made.iter().filter(|(_, count)| **count > 1);
        found.extend(twice.map(|(key, count)| format!("{key:?} was made {count} times")));
        found
    }

    pub(super) fn violation(&self, what: String) {
        self.violations.lock().unwrap().push(what);
    }

    pub(super) async fn call<T>(&self, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        if self.hangs.load(Ordering::SeqCst) {
            pending::<()>().await;
        }
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let planned = *self.planned.lock().unwrap();
        let fault = planned.filter(|(call, _)| *call == number).map(|(_, fault)| fault);
        let lost = || Error::Failed("connection reset".to_owned());
        match fault {
            Some(Fault::FailBefore) => return Err(lost()),
            Some(Fault::CrashBefore) => self.crash().await,
            Some(Fault::FailAfter | Fault::CrashAfter) | None => {}
        }
        let done = act();
        match fault {
            Some(Fault::FailAfter) => Err(lost()),
            Some(Fault::CrashAfter) => self.crash().await,
            _ => done,
        }
    }

    async fn crash(&self) -> ! {
        self.crashed.notify_one();
        pending().await
    }

    fn residents_of(&self, namespace: &str) -> Vec<String> {
        self.composites.names_in(namespace)
    }

    /// Removes terminating objects, and with a namespace everything in it.
    fn release(&self) {
        let mut objects = self.objects.lock().unwrap();
        let going: Vec<_> = objects
            .iter()
            .filter(|(_, seen)| seen.terminating)
            .map(|(key, _)| key.clone())
            .collect();
        for key in going {
            objects.remove(&key);
            if key.kind != SharedKind::Namespace {
                continue;
            }
            let inside: Vec<_> =
                objects.keys().filter(|other| other.namespace == key.name).cloned().collect();
            for other in inside {
                if matches!(other.kind, SharedKind::ExternalSecret | SharedKind::ProviderConfig) {
                    self.violation(format!("{other:?} went with its namespace"));
                }
                objects.remove(&other);
            }
        }
    }

    fn put_now(&self, object: &SharedObject) -> Result<Seen, Error> {
        let key = &object.wanted.key;
        let mut objects = self.objects.lock().unwrap();
        if key.kind != SharedKind::Namespace {
            let home = objects.get(&home_of(key));
            if home.is_none_or(|home| home.terminating) {
                return Err(Error::Failed(format!("namespace {} is not there", key.namespace)));
            }
        }
        let version = (self.versions.fetch_add(1, Ordering::SeqCst) + 1).to_string();
        let removals = shared::removals(&object.value);
        if let Some(found) = objects.get_mut(key) {
            let hash = Some(object.wanted.hash.clone());
            // A write that changes nothing keeps the version.
            if found.hash != hash {
                *found = Seen { hash, version, removals, ..found.clone() };
            }
            return Ok(found.clone());
        }
        *self.made.lock().unwrap().entry(key.clone()).or_default() += 1;
        let project = object.value["metadata"]["labels"][composite::LABEL_PROJECT].as_str();
        let seen = Seen {
            uid: format!("{key:?}"),
            version,
            removals,
            owner: project.and_then(|text| text.parse().ok()),
            hash: Some(object.wanted.hash.clone()),
            terminating: false,
            ready: matches!(key.kind, SharedKind::ExternalSecret).then_some(Ok(())),
        };
        objects.insert(key.clone(), seen.clone());
        Ok(seen)
    }

    fn remove_now(&self, Removal { key, uid, version }: &Removal) -> Result<(), Error> {
        let living = self.residents_of(&key.namespace);
        if !living.is_empty() {
            self.violation(format!("{key:?} was removed under {living:?}"));
        }
        let mut objects = self.objects.lock().unwrap();
        let depends = |other: &SharedKey| {
            other.namespace == key.namespace
                && match key.kind {
                    SharedKind::ExternalSecret => other.kind == SharedKind::ProviderConfig,
                    SharedKind::Namespace => {
                        matches!(
                            other.kind,
                            SharedKind::ExternalSecret | SharedKind::ProviderConfig
                        )
                    }
                    _ => false,
                }
        };
        if let Some(other) = objects.keys().find(|other| depends(other)) {
            self.violation(format!("{key:?} was removed before {other:?} was gone"));
        }
        match objects.get_mut(key) {
            None => Ok(()),
            Some(found) if found.uid != *uid || found.version != *version => {
                Err(Error::Conflict("it was written since".to_owned()))
            }
            Some(found) => {
                found.terminating = true;
                Ok(())
            }
        }
    }
}

/// The namespace that an object is in.
fn home_of(key: &SharedKey) -> SharedKey {
    SharedKey {
        namespace: key.namespace.clone(),
        kind: SharedKind::Namespace,
        name: key.namespace.clone(),
        provider: None,
    }
}

#[async_trait]
impl Management for Cluster {
    async fn verify(&self) -> Result<ClusterFacts, Error> {
        let facts =
            ClusterFacts { identity: self.identity.clone(), problem: None, facts: json!({}) };
        self.call(|| Ok(facts)).await
    }

    fn expect(&self, _kinds: &[CompositeType]) {}

    async fn survey(
        &self,
        _identity: Option<&str>,
        _providers: &BTreeSet<String>,
    ) -> Result<SharedObjects, Error> {
        self.call(|| {
            let objects = self.objects.lock().unwrap().clone();
            // A terminating object is listed once more, and gone the next time.
            self.release();
            Ok(SharedObjects { objects, ..SharedObjects::default() })
        })
        .await
    }

    async fn find(&self, key: &SharedKey) -> Result<Option<Seen>, Error> {
        self.call(|| Ok(self.objects.lock().unwrap().get(key).cloned())).await
    }

    async fn put(&self, object: &SharedObject) -> Result<Seen, Error> {
        self.call(|| self.put_now(object)).await
    }

    async fn remove(&self, removal: &Removal) -> Result<(), Error> {
        self.call(|| self.remove_now(removal)).await
    }

    async fn residents(&self, assignment: &ClusterAssignment) -> Result<Vec<Resident>, Error> {
        let composite = |name| Resident {
            group: "test".to_owned(),
            plural: "composites".to_owned(),
            kind: "Composite".to_owned(),
            name,
            project: None,
            token_of: None,
            owners: Vec::new(),
        };
        self.composites.reach(Moment::Residents).await;
        let found = || self.residents_of(&assignment.namespace).into_iter().map(composite);
        self.call(|| Ok(found().collect())).await
    }
}
