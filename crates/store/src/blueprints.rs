//! Versions of blueprints that were read before. A published version is never
//! written again, so what was read of one stays true; parsing its parameter
//! schema anew for every row of every tick was a good part of a sweep.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slipway_core::blueprint::BlueprintVersion;
use uuid::Uuid;

/// More than an installation has in use; past it, all are read again.
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

    /// Every state of the map is a good one, also after a panic elsewhere.
    fn known(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<BlueprintVersion>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
