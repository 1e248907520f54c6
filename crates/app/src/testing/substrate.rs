//! A minimal substrate: knows whether the composite of an attempt exists, and
//! which token it carries. Always ready, never slow.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use slipway_core::broker::observation::{CompositeReport, LiveComposite};
use slipway_core::ids::ProvisionedResourceId;
use slipway_core::nodes::token::Carried;

#[derive(Debug, Default)]
pub(super) struct Substrate {
    composites: Mutex<HashMap<ProvisionedResourceId, Carried>>,
}

impl Substrate {
    pub(super) fn observe(&self, id: ProvisionedResourceId) -> CompositeReport {
        let composites = self.composites.lock().unwrap_or_else(PoisonError::into_inner);
        match composites.get(&id) {
            None => CompositeReport::Absent,
            Some(carried) => CompositeReport::Present(Box::new(LiveComposite {
                uid: id.to_string(),
                ready: true,
                failure: None,
                terminating: false,
                owned_hash: "same".to_owned(),
                carried: *carried,
                injected: None,
                evidence: json!({ "engine": "simulated" }),
            })),
        }
    }

    pub(super) fn apply(&self, id: ProvisionedResourceId, carried: Carried) {
        self.composites.lock().unwrap_or_else(PoisonError::into_inner).insert(id, carried);
    }

    pub(super) fn remove(&self, id: ProvisionedResourceId) {
        self.composites.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}
