//! One composite, from its first appearance to its end.
//!
//! *Expected flow:* finalizer and reference in one apply → its Composition, if
//! it names one → the composed `Server` → conditions → the machine boots. On
//! deletion: wait for other finalizers, as the composed resource of a real
//! composite outlives them → the machine ends → the `Server` is deleted → our
//! finalizer is removed.
//!
//! *Guarantees:* three requests for a composite that is Ready at once and names
//! no Composition, and three for its deletion.

use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::agent::{Agent, Injected};
use crate::clock;
use crate::context::Context;
use crate::journal::Name;
use crate::kinds::{self, FINALIZER, MANAGER};
use crate::script::{Condition, Script, State};
use crate::watching::Updates;
use crate::{composition, managed};

/// Namespace of the composed resource if the composite has none.
const NAMESPACE: &str = "default";

/// Kubernetes sets these itself; they wait for us.
const OF_KUBERNETES: [&str; 2] = ["foregroundDeletion", "orphan"];

const SHORTEST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(5);

/// The `group/version` in which Crossplane reads composites: the referenceable one.
pub(crate) type ReadAs = watch::Receiver<String>;

/// Follows a composite until it is gone.
pub(crate) async fn live(
    context: Context,
    resource: ApiResource,
    read_as: ReadAs,
    mut updates: Updates,
) {
    let first = updates.borrow().clone();
    let mut definition = read_as.clone();
    let mut composite = Composite::new(context, resource, read_as, &first);
    let mut retry = SHORTEST_RETRY;
    loop {
        let object = updates.borrow_and_update().clone();
        let wait = match composite.advance(&object).await {
            Ok(wait) => {
                retry = SHORTEST_RETRY;
                wait
            }
            Err(error) => {
                tracing::debug!(%error, name = composite.name.composite, "tried again later");
                retry = (retry * 2).min(LONGEST_RETRY);
                Some(retry)
            }
        };
        let waited = async {
            match wait {
                None => std::future::pending().await,
                Some(wait) => tokio::time::sleep(wait).await,
            }
        };
        let redefined = async {
            if definition.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let changed = tokio::select! {
            changed = updates.changed() => changed,
            () = waited => Ok(()),
            () = redefined => Ok(()),
        };
        if changed.is_err() {
            break;
        }
    }
    // Also when somebody removed our finalizer by hand.
    composite.end_agent().await;
}

struct Composite {
    context: Context,
    resource: ApiResource,
    read_as: ReadAs,
    name: Name,
    namespace: Option<String>,
    uid: String,
    seen: Instant,
    /// Progress from before this process: a composite that is already Ready stays so.
    head_start: Duration,
    leaving_since: Option<Instant>,
    prepared: bool,
    composed: bool,
    /// The name of the Composition that it was composed by last, and the version it was read in.
    composed_by: Option<(String, String)>,
    /// The composed resource is a managed one, see `managed`.
    managed: bool,
    finished: bool,
    /// What we wrote last. The watch may still deliver older states.
    written: Option<Vec<Condition>>,
    agent: Option<Agent>,
    leaves: bool,
}

impl Composite {
    fn new(
        context: Context,
        resource: ApiResource,
        read_as: ReadAs,
        object: &DynamicObject,
    ) -> Self {
        let metadata = &object.metadata;
        let was_ready = is_ready(&object.data);
        let composite = metadata.name.clone().unwrap_or_default();
        let bare = context.options.bare;
        Self {
            context,
            resource,
            read_as,
            name: Name { namespace: metadata.namespace.clone().unwrap_or_default(), composite },
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone().unwrap_or_default(),
            seen: Instant::now(),
            head_start: if was_ready { Duration::MAX } else { Duration::ZERO },
            leaving_since: None,
            prepared: bare || metadata.finalizers.iter().flatten().any(|name| name == FINALIZER),
            composed: bare,
            composed_by: None,
            managed: false,
            finished: false,
            written: None,
            agent: None,
            leaves: false,
        }
    }

    /// Takes the next steps. Returns when to run again if nothing changes.
    async fn advance(&mut self, object: &DynamicObject) -> kube::Result<Option<Duration>> {
        let value = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
        let script = Script::of(&value, &self.context.options);
        // Also during deletion: its node's work may be what delays it.
        if let (Some(agent), Ok(script)) = (&self.agent, &script) {
            agent.keep_busy(script.busy);
        }
        if object.metadata.deletion_timestamp.is_some() {
            return self.leave(object, &script.unwrap_or_default()).await;
        }
        if !self.prepared {
            self.apply(true).await?;
            self.prepared = true;
        }
        let composition = match self.composition(&value).await? {
            Ok(composition) => composition,
            Err(problem) => {
                self.write(&State::refused(&problem, is_ready(&value))).await?;
                return Ok(Some(SHORTEST_RETRY));
            }
        };
        if !self.composed {
            self.managed = script.as_ref().is_ok_and(|script| script.refuse_deletion.is_some());
            self.compose(script.as_ref().ok()).await?;
            self.composed = true;
        }
        if let Some((by, shown)) = composition {
            self.compose_by(&shown).await?;
            self.composed_by = Some(by);
        }
        let state = match &script {
            Ok(script) => script.state(self.seen.elapsed().saturating_add(self.head_start)),
            Err(reason) => State::refused(reason, false),
        };
        self.write(&state).await?;
        let busy = script.as_ref().is_ok_and(|script| script.busy);
        self.leaves = script.is_ok_and(|script| script.leave);
        if state.boots {
            let injected = Injected::of(&value, &self.context.options);
            match (&mut self.agent, injected) {
                (Some(agent), Some(injected)) => agent.update(injected).await,
                (None, Some(injected)) => {
                    self.agent = Agent::boot(&self.context, &self.name, injected).await;
                    if let Some(agent) = &self.agent {
                        agent.keep_busy(busy);
                    }
                }
                (_, None) => {}
            }
        }
        Ok(state.next)
    }

    /// The Composition that it names and was not composed by yet.
    async fn composition(&self, value: &Value) -> kube::Result<Result<Found, String>> {
        let Some(name) = composition::named(value).filter(|_| !self.context.options.bare) else {
            return Ok(Ok(None));
        };
        let by = (name.to_owned(), self.read_as.borrow().clone());
        if self.composed_by.as_ref() == Some(&by) {
            return Ok(Ok(None));
        }
        let found = composition::find(&self.context, name, &self.resource, &by.1).await?;
        Ok(found.map(|shown| Some((by, shown))))
    }

    /// The composed resource shows what composed it.
    async fn compose_by(&self, shown: &Value) -> kube::Result<()> {
        let servers = self.context.api(&kinds::servers(), Some(self.composed_namespace()));
        let patch = json!({ "spec": { "composedBy": shown } });
        let parameters =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
        let _permit = self.context.permit().await;
        servers.patch(&self.name.composite, &parameters, &Patch::Merge(&patch)).await.map(|_| ())
    }

    async fn leave(
        &mut self,
        object: &DynamicObject,
        script: &Script,
    ) -> kube::Result<Option<Duration>> {
        let finalizers = object.metadata.finalizers.as_deref().unwrap_or_default();
        if self.finished || !finalizers.iter().any(|name| name == FINALIZER) {
            return Ok(None);
        }
        let ours = |name: &str| name == FINALIZER || OF_KUBERNETES.contains(&name);
        if !finalizers.iter().all(|name| ours(name)) {
            return Ok(None);
        }
        let since = *self.leaving_since.get_or_insert_with(Instant::now);
        let left = script.deletion_delay.saturating_sub(since.elapsed());
        if !left.is_zero() {
            self.write(&State::leaving()).await?;
            return Ok(Some(left));
        }
        self.end_agent().await;
        let servers = self.context.api(&kinds::servers(), Some(self.composed_namespace()));
        let permit = self.context.permit().await;
        let deleted = servers.delete(&self.name.composite, &DeleteParams::default()).await;
        drop(permit);
        absent_is_fine(deleted.map(|_| ()))?;
        if self.managed
            && !managed::is_gone(&self.context, &servers, &self.name.composite, script).await?
        {
            self.write(&State::leaving()).await?;
            return Ok(Some(managed::RETRY));
        }
        if script.keep_finalizer {
            self.write(&State::leaving()).await?;
            return Ok(None);
        }
        absent_is_fine(self.apply(false).await)?;
        self.finished = true;
        Ok(None)
    }

    async fn end_agent(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.end(self.leaves).await;
        }
    }

    /// Applies our part of the composite, with or without the finalizer. The
    /// uid prevents that an apply after its deletion makes an empty composite.
    async fn apply(&self, kept: bool) -> kube::Result<()> {
        let mut object = json!({
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": { "name": self.name.composite, "uid": self.uid },
        });
        if kept {
            object["metadata"]["finalizers"] = json!([FINALIZER]);
        }
        let server = kinds::servers();
        let mut reference = json!({
            "apiVersion": server.api_version,
            "kind": server.kind,
            "name": self.name.composite,
        });
        // Within a namespace a reference means the same one.
        if self.namespace.is_none() {
            reference["namespace"] = json!(NAMESPACE);
        }
        object["spec"]["crossplane"]["resourceRefs"] = json!([reference]);
        let api = self.context.api(&self.resource, self.namespace.as_deref());
        let _permit = self.context.permit().await;
        let parameters = PatchParams::apply(MANAGER).force();
        api.patch(&self.name.composite, &parameters, &Patch::Apply(&object)).await.map(|_| ())
    }

    async fn compose(&self, script: Option<&Script>) -> kube::Result<()> {
        let server = kinds::servers();
        let mut object = json!({
            "apiVersion": server.api_version,
            "kind": server.kind,
            "metadata": {
                "name": self.name.composite,
                "labels": { "crossplane.io/composite": self.name.composite },
                "ownerReferences": [{
                    "apiVersion": self.resource.api_version,
                    "kind": self.resource.kind,
                    "name": self.name.composite,
                    "uid": self.uid,
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": {},
        });
        if let Some(script) = script.filter(|script| script.refuse_deletion.is_some()) {
            managed::make(&self.context, &self.name.composite, script, &mut object).await?;
        }
        let object: DynamicObject =
            serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        let servers = self.context.api(&server, Some(self.composed_namespace()));
        let _permit = self.context.permit().await;
        let parameters =
            PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        match servers.create(&parameters, &object).await {
            // An earlier process of ours made it.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            created => created.map(|_| ()),
        }
    }

    async fn write(&mut self, state: &State) -> kube::Result<()> {
        if self.written.as_ref() == Some(&state.conditions) {
            return Ok(());
        }
        let now = clock::now_in_seconds();
        let conditions: Vec<Value> = state
            .conditions
            .iter()
            .map(|condition| {
                json!({
                    "type": condition.kind,
                    "status": if condition.status { "True" } else { "False" },
                    "reason": condition.reason,
                    "message": condition.message,
                    "lastTransitionTime": now,
                })
            })
            .collect();
        let patch = json!({ "status": { "conditions": conditions } });
        let api = self.context.api(&self.resource, self.namespace.as_deref());
        let permit = self.context.permit().await;
        let parameters =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
        api.patch_status(&self.name.composite, &parameters, &Patch::Merge(&patch)).await?;
        drop(permit);
        self.written = Some(state.conditions.clone());
        Ok(())
    }

    fn composed_namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(NAMESPACE)
    }
}

/// By what it is composed, and what the composed resource says about that.
type Found = Option<((String, String), Value)>;

fn is_ready(composite: &Value) -> bool {
    let conditions = composite["status"]["conditions"].as_array();
    let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    conditions.into_iter().flatten().any(ready)
}

fn absent_is_fine(done: kube::Result<()>) -> kube::Result<()> {
    match done {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        // A conflict: the composite with this uid is gone.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        done => done,
    }
}
