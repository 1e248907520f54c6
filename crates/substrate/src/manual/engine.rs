//! Implements the substrate port on the rows of machines.

use std::collections::HashMap;

use async_trait::async_trait;
use serde_json::json;
use slipway_app::permits::ActionPermits;
use slipway_app::ports::store::Page;
use slipway_app::ports::substrate::{Address, Error, InventoryPage, InventoryRequest, Substrate};
use slipway_core::broker::observation::{CompositeReport, LiveComposite};
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::deletion::leak::{Found, ObjectRef};
use slipway_core::ids::{Partition, ProvisionedResourceId};
use slipway_core::nodes::machine::Machine;
use slipway_core::nodes::token::Carried;
use slipway_render::composite::LABEL_PROVISIONED_RESOURCE;
use slipway_render::{RenderedComposite, machine};

/// The machines of one cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ManualSubstrate {
    partition: Partition,
    permits: ActionPermits,
}

impl ManualSubstrate {
    pub const fn new(partition: Partition, permits: ActionPermits) -> Self {
        Self { partition, permits }
    }
}

#[async_trait]
impl Substrate for ManualSubstrate {
    fn engine(&self) -> Engine {
        Engine::Manual
    }

    async fn identity(&self) -> Result<String, Error> {
        Ok(self.partition.to_string())
    }

    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        let ids: Vec<_> = addresses.iter().map(|one| one.provisioned_resource_id).collect();
        let found = match self.permits.stores.nodes.machine_load(&ids).await {
            Ok(found) => found,
            Err(error) => {
                let unknown = CompositeReport::Unknown { reason: error.to_string() };
                return vec![unknown; addresses.len()];
            }
        };
        let found: HashMap<_, _> =
            found.iter().map(|machine| (machine.provisioned_resource_id, machine)).collect();
        ids.iter()
            .map(|id| found.get(id).map_or(CompositeReport::Absent, |one| live(one)))
            .collect()
    }

    async fn apply(&self, composite: &RenderedComposite) -> Result<CompositeReport, Error> {
        let object = composite.expose_object();
        let label = object["metadata"]["labels"][LABEL_PROVISIONED_RESOURCE].as_str();
        let id = label.and_then(|label| label.parse().ok());
        let id = id.ok_or_else(|| Error::Failed("its label names no resource".to_owned()))?;
        let wanted = Machine {
            provisioned_resource_id: id,
            namespace: composite.namespace().to_owned(),
            name: composite.name().to_owned(),
            owned_hash: composite.owned_hash().to_owned(),
            claim_token: composite.claim_token(),
            confirm_gone: machine::confirm_gone(object),
            terminating_at: None,
        };
        let _permit = self.permits.enter().await?;
        let put = self.permits.stores.nodes.machine_put(self.partition, &wanted).await;
        let found = put.map_err(|error| unanswered(&error))?;
        if found.claim_token > wanted.claim_token {
            let (ours, found) = (wanted.claim_token, found.claim_token);
            return Err(Error::Superseded { ours, found });
        }
        Ok(live(&found))
    }

    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error> {
        let id = address.provisioned_resource_id;
        if uid != uid_of(id) {
            return Err(Error::Conflict(format!("the machine has the uid {id} and not {uid}")));
        }
        let _permit = self.permits.enter().await?;
        let released = self.permits.stores.nodes.machine_release(id).await;
        released.map_err(|error| unanswered(&error))
    }

    async fn inventory(&self, request: &InventoryRequest) -> Result<InventoryPage, Error> {
        let failed = |reason: String| Error::Failed(reason);
        let after = request.after.as_deref().map(str::parse).transpose();
        let after = after.map_err(|_| failed("that is no cursor of this inventory".to_owned()))?;
        let page = Page { after, limit: u32::try_from(request.limit).unwrap_or(u32::MAX) };
        let listed = self.permits.stores.nodes.machine_list(self.partition, page).await;
        let listed = listed.map_err(|error| failed(error.to_string()))?;
        let found = |machine: &Machine| Found {
            object_ref: ObjectRef {
                namespace: machine.namespace.clone(),
                name: machine.name.clone(),
            },
            uid: uid_of(machine.provisioned_resource_id),
            provisioned_resource_id: Some(machine.provisioned_resource_id),
            claim_token: Some(machine.claim_token),
            group: None,
            evidence: evidence(machine),
        };
        Ok(InventoryPage {
            found: listed.iter().map(found).collect(),
            next: listed.next.map(|next| next.to_string()),
            ..InventoryPage::default()
        })
    }
}

/// An attempt has one machine, which is never made anew.
fn uid_of(id: ProvisionedResourceId) -> String {
    id.to_string()
}

fn live(machine: &Machine) -> CompositeReport {
    CompositeReport::Present(Box::new(LiveComposite {
        uid: uid_of(machine.provisioned_resource_id),
        ready: true,
        failure: None,
        terminating: machine.terminating_at.is_some(),
        owned_hash: machine.owned_hash.clone(),
        carried: Carried::Nothing,
        injected: None,
        evidence: evidence(machine),
    }))
}

fn evidence(machine: &Machine) -> serde_json::Value {
    json!({
        "machine": "booted by hand",
        "confirm_gone": machine.confirm_gone,
        "terminating_at": machine.terminating_at,
    })
}

/// The statement may have been committed all the same.
fn unanswered(error: &slipway_app::ports::store::Error) -> Error {
    Error::Unanswered(error.to_string())
}
