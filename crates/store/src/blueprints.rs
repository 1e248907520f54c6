//! A cache of blueprint versions. A published version is never written again,
//! so an entry never becomes stale. Parsing the parameter schema anew for every
//! row of every tick took a good part of a sweep.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slipway_core::catalog::blueprint_version::BlueprintVersion;
use uuid::Uuid;

/// More than an installation has in use; at this size the cache is cleared.
const MOST: usize = 1_024;

#[derive(Debug, Default)]
pub(crate) struct Blueprints(Mutex<HashMap<Uuid, Arc<BlueprintVersion>>>);

impl Blueprints {
    pub(crate) fn get(&self, version: Uuid) -> Option<Arc<BlueprintVersion>> {
        self.known().get(&version).cloned()
    }

    pub(crate) fn keep(&self, version: &Arc<BlueprintVersion>) {
        let mut known = self.known();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(version.id.as_uuid(), Arc::clone(version));
    }

    /// Every state of the map is valid, also after a panic elsewhere.
    fn known(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<BlueprintVersion>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
