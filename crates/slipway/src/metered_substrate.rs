//! Wraps an engine and measures its calls, without changing them. A call that its
//! caller gives up counts as abandoned when it is dropped.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use slipway_app::ports::substrate::{
    Address, Error, HighWaterMark, InventoryPage, InventoryRequest, NodeOutput, OutputPart,
};
use slipway_app::ports::{Meter, Substrate};
use slipway_core::broker::holding::Holder;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::orphan::KeepOrder;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::{GroupId, ProvisionedResourceId};
use slipway_render::RenderedComposite;

#[derive(Debug)]
pub(crate) struct MeteredSubstrate {
    inner: Arc<dyn Substrate>,
    meter: Arc<dyn Meter>,
    /// The name of the cluster.
    partition: String,
}

impl MeteredSubstrate {
    pub(crate) fn new(inner: Arc<dyn Substrate>, meter: Arc<dyn Meter>, partition: &str) -> Self {
        Self { inner, meter, partition: partition.to_owned() }
    }

    fn call(&self, kind: &'static str) -> Call<'_> {
        Call { of: self, kind, begun: Instant::now(), outcome: "abandoned" }
    }
}

/// A call under way. Its drop reports it to the meter, however it ended.
struct Call<'a> {
    of: &'a MeteredSubstrate,
    kind: &'static str,
    begun: Instant,
    outcome: &'static str,
}

impl Call<'_> {
    fn ended<T>(mut self, answer: Result<T, Error>) -> Result<T, Error> {
        self.outcome = match &answer {
            Ok(_) => "done",
            Err(Error::Conflict(_)) => "conflict",
            Err(Error::Superseded { .. }) => "superseded",
            Err(Error::Failed(_) | Error::NoCapacity(_)) => "failed",
            Err(Error::Unanswered(_)) => "abandoned",
            Err(Error::Withheld) => "withheld",
        };
        answer
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.of.meter.acted(&self.of.partition, self.kind, self.outcome, self.begun.elapsed());
    }
}

#[async_trait]
impl Substrate for MeteredSubstrate {
    fn engine(&self) -> Engine {
        self.inner.engine()
    }

    async fn identity(&self) -> Result<String, Error> {
        self.inner.identity().await
    }

    /// Counts one call per batch.
    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        let mut call = self.call("observe");
        let reports = self.inner.observe(addresses).await;
        call.outcome = "done";
        reports
    }

    async fn apply(&self, composite: &RenderedComposite) -> Result<CompositeReport, Error> {
        let call = self.call("apply");
        call.ended(self.inner.apply(composite).await)
    }

    async fn high_water_mark_read(&self, fresh: bool) -> Result<HighWaterMark, Error> {
        let call = self.call("high_water_mark_read");
        call.ended(self.inner.high_water_mark_read(fresh).await)
    }

    async fn high_water_mark_compared(&self) {
        self.inner.high_water_mark_compared().await;
    }

    async fn high_water_mark_write(&self, heartbeat: i64) -> Result<(), Error> {
        let call = self.call("high_water_mark_write");
        call.ended(self.inner.high_water_mark_write(heartbeat).await)
    }

    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error> {
        let call = self.call("delete");
        call.ended(self.inner.delete(address, uid).await)
    }

    async fn holders(&self, address: &Address) -> Result<Vec<Holder>, Error> {
        let call = self.call("holders");
        call.ended(self.inner.holders(address).await)
    }

    async fn output(
        &self,
        address: &Address,
        part: OutputPart,
    ) -> Result<Option<NodeOutput>, Error> {
        let call = self.call("output");
        call.ended(self.inner.output(address, part).await)
    }

    async fn keep(&self, address: &Address, kept: &[KeepOrder]) -> Result<(), Error> {
        let call = self.call("keep");
        call.ended(self.inner.keep(address, kept).await)
    }

    /// Not measured: this waits until something changes.
    async fn changed(&self) -> Vec<ProvisionedResourceId> {
        self.inner.changed().await
    }

    async fn inventory(&self, request: &InventoryRequest) -> Result<InventoryPage, Error> {
        let call = self.call("inventory");
        call.ended(self.inner.inventory(request).await)
    }

    async fn group_inventory(
        &self,
        group: GroupId,
        request: &InventoryRequest,
    ) -> Result<InventoryPage, Error> {
        let call = self.call("inventory");
        call.ended(self.inner.group_inventory(group, request).await)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    type Metered = (String, &'static str, &'static str);

    #[derive(Debug, Default)]
    struct Notes(Mutex<Vec<Metered>>);

    impl Meter for Notes {
        fn acted(&self, partition: &str, kind: &'static str, outcome: &'static str, _: Duration) {
            self.0.lock().unwrap().push((partition.to_owned(), kind, outcome));
        }
    }

    fn attempt() -> ProvisionedResourceId {
        ProvisionedResourceId::new(uuid::Uuid::nil())
    }

    /// Never answers a delete, refuses to list.
    #[derive(Debug)]
    struct Slow;

    #[async_trait]
    impl Substrate for Slow {
        fn engine(&self) -> Engine {
            Engine::Local
        }

        async fn identity(&self) -> Result<String, Error> {
            Ok(String::new())
        }

        async fn observe(&self, _: &[Address]) -> Vec<CompositeReport> {
            Vec::new()
        }

        async fn apply(&self, _: &RenderedComposite) -> Result<CompositeReport, Error> {
            Err(Error::Conflict("another's".to_owned()))
        }

        async fn delete(&self, _: &Address, _: &str) -> Result<(), Error> {
            std::future::pending().await
        }

        async fn changed(&self) -> Vec<ProvisionedResourceId> {
            vec![attempt()]
        }
    }

    #[tokio::test]
    async fn a_call_is_told_by_how_it_ended_also_if_nobody_waited_for_it() {
        let notes = Arc::new(Notes::default());
        let metered = MeteredSubstrate::new(Arc::new(Slow), Arc::clone(&notes) as _, "east");
        metered.observe(&[]).await;
        let request = InventoryRequest { substrate_uid: None, after: None, limit: 1 };
        metered.inventory(&request).await.unwrap_err();
        let address = Address {
            provisioned_resource_id: attempt(),
            namespace: String::new(),
            name: String::new(),
            composite_type: None,
            substrate_uid: None,
        };
        assert_eq!(metered.changed().await, [attempt()], "what it sees is handed on");
        let deleting = metered.delete(&address, "uid");
        assert!(tokio::time::timeout(Duration::ZERO, deleting).await.is_err());
        let told = notes.0.lock().unwrap();
        let told: Vec<_> = told
            .iter()
            .map(|(partition, kind, outcome)| (partition.as_str(), *kind, *outcome))
            .collect();
        assert_eq!(
            told,
            [
                ("east", "observe", "done"),
                ("east", "inventory", "failed"),
                ("east", "delete", "abandoned"),
            ]
        );
    }
}
