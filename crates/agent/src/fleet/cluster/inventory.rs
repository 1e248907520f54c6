//! The inventory in ConfigMaps of the agent's namespace: one for each stack, and one
//! that says whose they are and of which cluster. They have references, never content.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_cluster::{DynamicObject, Listing, ObjectRef, Version, api_resource};

use super::super::backend::{Fault, Owner};
use super::super::inventory::{Entry, Inventory};
use super::backend::{ClusterBackend, FIELD_MANAGER, fault};
use super::marks::{AGENT, INSTALLATION, INVENTORY, STACK, selector};

/// The largest ConfigMap that we write, in bytes of its data; a server takes 1 MiB with
/// everything around it.
const LARGEST: usize = 900 * 1024;

/// The key of the data.
const DATA: &str = "slipway";

/// The ConfigMap of the agent.
#[derive(Serialize, Deserialize)]
struct Root {
    installation: String,
    agent: String,
    /// The uid of the namespace kube-system.
    cluster: String,
}

/// The ConfigMap of a stack.
#[derive(Serialize, Deserialize)]
struct Stored {
    cluster: String,
    entry: Entry,
}

fn stack_name(stack: &str, owner: &Owner) -> String {
    format!("slipway-stack-{stack}-{}", owner.agent)
}

fn root_name(owner: &Owner) -> String {
    format!("slipway-agent-{}", owner.agent)
}

fn data(object: &DynamicObject) -> Option<&str> {
    object.data["data"][DATA].as_str()
}

impl ClusterBackend {
    fn config_map(&self, name: String) -> ObjectRef {
        ObjectRef {
            resource: api_resource("v1", "ConfigMap", "configmaps"),
            namespace: Some(self.namespace.clone()),
            name,
        }
    }

    /// Reads who owns the inventory, or writes that we do; then every stack of it.
    pub(super) async fn inventory_read(&mut self, owner: &Owner) -> Result<Inventory, Fault> {
        let cluster = self.identity.clone().unwrap_or_default();
        self.versions.clear();
        let root = self.config_map(root_name(owner));
        let found = self.connection.get(&root).await.map_err(fault)?;
        let known = match &found {
            None => None,
            Some(found) => {
                let text = data(found).unwrap_or_default();
                let damaged = |error: serde_json::Error| {
                    Fault::Foreign(format!("{root} is damaged ({error})"))
                };
                Some(serde_json::from_str::<Root>(text).map_err(damaged)?)
            }
        };
        let installation = match &known {
            // A server that learnt to name its installation is the same one.
            Some(known) if known.installation == owner.agent => known.installation.clone(),
            Some(known) if owner.installation == owner.agent => known.installation.clone(),
            Some(known) if known.installation != owner.installation => {
                let text = format!("{root} is of the installation {}", known.installation);
                return Err(Fault::Foreign(text));
            }
            _ => owner.installation.clone(),
        };
        let owner = Owner { installation, agent: owner.agent.clone() };
        if known.as_ref().is_none_or(|known| known.cluster != cluster) {
            if known.is_some() {
                tracing::warn!(
                    namespace = self.namespace,
                    "the inventory is of another cluster, so it does not count here: everything is applied anew and nothing is deleted"
                );
            }
            let version = found.as_ref().and_then(|found| Version::of(&found.metadata));
            self.root_write(&root, version, &owner, &cluster).await?;
        }
        self.owner = Some(owner.clone());
        let resource = api_resource("v1", "ConfigMap", "configmaps");
        let listing = Listing {
            namespace: Some(&self.namespace),
            labels: Some(&selector(&owner)),
            ..Listing::all(&resource)
        };
        let mut inventory = Inventory::new();
        for object in self.connection.list(listing).await.map_err(fault)? {
            let labels = object.metadata.labels.as_ref();
            let Some(stack) = labels.and_then(|labels| labels.get(STACK)).cloned() else {
                continue;
            };
            if let Some(version) = Version::of(&object.metadata) {
                self.versions.insert(stack.clone(), version);
            }
            let stored = data(&object).and_then(|text| serde_json::from_str::<Stored>(text).ok());
            let Some(stored) = stored else {
                return Err(Fault::Unreachable(format!(
                    "the ConfigMap {}/{} of the inventory is damaged; remove it, and the stack is applied anew",
                    self.namespace,
                    stack_name(&stack, &owner)
                )));
            };
            if stored.cluster == cluster {
                inventory.insert(stack, stored.entry);
            }
        }
        Ok(inventory)
    }

    async fn root_write(
        &self,
        root: &ObjectRef,
        version: Option<Version>,
        owner: &Owner,
        cluster: &str,
    ) -> Result<(), Fault> {
        if version.is_none() {
            self.namespace_make().await?;
        }
        let content = Root {
            installation: owner.installation.clone(),
            agent: owner.agent.clone(),
            cluster: cluster.to_owned(),
        };
        let mut body = config_map_body(root, owner, &json!(content).to_string());
        body["metadata"]["labels"][INVENTORY] = json!("owner");
        self.write(root, version.as_ref(), &body).await.map(|_| ())
    }

    /// Creates the namespace of the inventory if it is not there.
    async fn namespace_make(&self) -> Result<(), Fault> {
        let namespace = ObjectRef {
            resource: api_resource("v1", "Namespace", "namespaces"),
            namespace: None,
            name: self.namespace.clone(),
        };
        if self.connection.get_metadata(&namespace).await.map_err(fault)?.is_some() {
            return Ok(());
        }
        let name = &self.namespace;
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        match self.connection.create_applied(&namespace, &body, FIELD_MANAGER).await {
            Err(error) if !error.is_conflict() => Err(fault(error)),
            _ => Ok(()),
        }
    }

    pub(super) async fn inventory_write(
        &mut self,
        stack: &str,
        entry: &Entry,
    ) -> Result<(), Fault> {
        let owner = self.owner()?.clone();
        let cluster = self.identity.clone().unwrap_or_default();
        let text = json!(Stored { cluster, entry: entry.clone() }).to_string();
        if text.len() > LARGEST {
            return Err(Fault::Refused(format!(
                "its inventory would have {} bytes, and at most {LARGEST} are written; split the stack",
                text.len()
            )));
        }
        let object = self.config_map(stack_name(stack, &owner));
        let mut body = config_map_body(&object, &owner, &text);
        body["metadata"]["labels"][STACK] = json!(stack);
        let written = self.write(&object, self.versions.get(stack), &body).await?;
        if let Some(version) = Version::of(&written.metadata) {
            self.versions.insert(stack.to_owned(), version);
        }
        Ok(())
    }

    /// Writes a ConfigMap as it was read, or creates it.
    async fn write(
        &self,
        object: &ObjectRef,
        version: Option<&Version>,
        body: &Value,
    ) -> Result<DynamicObject, Fault> {
        let written = match version {
            Some(version) => {
                let updated = self.connection.update(object, version, body, FIELD_MANAGER).await;
                updated.map(|updated| updated.object)
            }
            None => self.connection.create_applied(object, body, FIELD_MANAGER).await,
        };
        written.map_err(|error| match error.is_conflict() {
            true => Fault::Moved(format!("somebody else wrote the inventory: {error}")),
            false => fault(error),
        })
    }

    pub(super) async fn inventory_remove(&mut self, stack: &str) -> Result<(), Fault> {
        let object = self.config_map(stack_name(stack, self.owner()?));
        if let Some(version) = self.versions.get(stack) {
            match self.connection.delete_unchanged(&object, version).await {
                Err(error) if error.is_conflict() => {
                    return Err(Fault::Moved(format!(
                        "somebody else wrote the inventory: {error}"
                    )));
                }
                done => done.map_err(fault)?,
            };
        }
        self.versions.remove(stack);
        Ok(())
    }
}

fn config_map_body(object: &ObjectRef, owner: &Owner, text: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": object.name,
            "namespace": object.namespace,
            "labels": { INVENTORY: "true", INSTALLATION: owner.installation, AGENT: owner.agent },
        },
        "data": { DATA: text },
    })
}
