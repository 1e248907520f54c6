//! Implements the management port on a cluster: reads and writes the objects
//! that the resources of a project share.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use slipway_app::placement::management::ClusterFacts;
use slipway_app::ports::Management;
use slipway_app::ports::substrate::Error;
use slipway_cluster::{
    ApiResource, Connection, DynamicObject, IndexState, Listing, ObjectRef, api_resource,
    require_identity,
};
use slipway_core::catalog::blueprint_version::CompositeType;
use slipway_core::placement::shared_objects::{Seen, SharedKey, SharedKind, SharedObjects, Source};
use slipway_render::shared::SharedObject;
use slipway_render::{composite, external_secret, provider_config, shared};

use super::engine::{CrossplaneSubstrate, RECENT, failed};
use super::{FIELD_MANAGER, live_object};

/// How long the identity, the version and the kinds of a cluster are reused
/// while no error occurs there.
pub(super) const VERIFIED_FOR: Duration = Duration::from_secs(600);

/// Parallel requests to one server.
const QUESTIONS: usize = 8;

/// Objects that are named of a namespace that is not empty.
const SHOWN: usize = 10;

/// The kinds that every project needs on its cluster: the name in the facts, the
/// versions that will do, and the plural.
const NEEDED: [(&str, &[&str], &str); 3] = [
    (
        "crossplane",
        &["apiextensions.crossplane.io/v2", "apiextensions.crossplane.io/v1"],
        "compositeresourcedefinitions",
    ),
    ("compositions", &["apiextensions.crossplane.io/v1"], "compositions"),
    ("external_secrets", &[external_secret::API_VERSION], "externalsecrets"),
];

/// The facts of the cluster, and the identity and result of the last survey.
#[derive(Debug, Default)]
pub(super) struct Verification(Mutex<Verified>);

#[derive(Debug, Default)]
struct Verified {
    facts: Option<(Instant, ClusterFacts)>,
    /// The identity of the cluster that the last survey read.
    surveyed: Option<String>,
    /// What the last survey of this process found.
    found: Option<BTreeSet<SharedKey>>,
}

impl Verification {
    fn lock(&self) -> std::sync::MutexGuard<'_, Verified> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The facts, if they are of this identity and recent.
    fn facts(&self, identity: &str) -> Option<ClusterFacts> {
        let verified = self.lock();
        let (at, facts) = verified.facts.as_ref()?;
        (facts.identity == identity && at.elapsed() < VERIFIED_FOR).then(|| facts.clone())
    }

    /// Whether a survey found everything that the last one found. If so, it
    /// shows no absence that was not proven before. If it misses objects that
    /// were created since the last one, they are put again, and that proves the
    /// identity anew.
    fn finds_again(&self, observed: &SharedObjects) -> bool {
        let before = &self.lock().found;
        before
            .as_ref()
            .is_some_and(|keys| keys.iter().all(|key| observed.objects.contains_key(key)))
    }

    /// Drops the facts, so that the next caller asks again.
    fn forget(&self) {
        self.lock().facts = None;
    }
}

fn resource(source: &Source) -> ApiResource {
    match source.kind {
        SharedKind::Namespace => api_resource("v1", "Namespace", "namespaces"),
        SharedKind::ResourceQuota => api_resource("v1", "ResourceQuota", "resourcequotas"),
        SharedKind::RoleBinding => {
            api_resource("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
        }
        SharedKind::ExternalSecret => {
            api_resource(external_secret::API_VERSION, external_secret::KIND, "externalsecrets")
        }
        SharedKind::ProviderConfig => {
            let provider = source.provider.as_deref().unwrap_or_default();
            let api_version = provider_config::api_version(provider);
            api_resource(&api_version, "ProviderConfig", "providerconfigs")
        }
    }
}

fn object_of(key: &SharedKey) -> ObjectRef {
    ObjectRef {
        resource: resource(&key.source()),
        namespace: (key.kind != SharedKind::Namespace).then(|| key.namespace.clone()),
        name: key.name.clone(),
    }
}

impl CrossplaneSubstrate {
    fn seen(&self, object: &DynamicObject) -> Option<Seen> {
        let whole = serde_json::to_value(object).ok()?;
        let ours = composite::installation(&whole) == Some(self.installation());
        let project = whole["metadata"]["labels"][composite::LABEL_PROJECT].as_str();
        Some(Seen {
            uid: object.metadata.uid.clone()?,
            owner: project.filter(|_| ours).and_then(|text| text.parse().ok()),
            hash: Some(shared::hash(&live_object::ours(&whole))),
            terminating: object.metadata.deletion_timestamp.is_some(),
            ready: ready(&whole),
        })
    }

    /// All objects of a kind that carry the label of our installation.
    async fn shared_of(
        &self,
        source: &Source,
    ) -> Result<Vec<(SharedKey, Seen)>, slipway_cluster::Error> {
        let (resource, labels) = (resource(source), self.selector());
        let listing = Listing { labels: Some(&labels), ..Listing::all(&resource) };
        let found = self.connection().list(listing).await?.into_iter().filter_map(|object| {
            let name = object.metadata.name.clone().unwrap_or_default();
            let key = SharedKey {
                namespace: object.metadata.namespace.clone().unwrap_or_else(|| name.clone()),
                kind: source.kind,
                provider: source.provider.clone(),
                name,
            };
            self.seen(&object).map(|seen| (key, seen))
        });
        Ok(found.collect())
    }

    /// Refuses a write unless the last survey read this same cluster.
    pub(super) async fn require_same_cluster(&self) -> Result<(), Error> {
        let found = self.connection().identity_within(RECENT).await.map_err(failed)?;
        self.require_surveyed(&found)
    }

    fn require_surveyed(&self, found: &str) -> Result<(), Error> {
        let surveyed = self.verification.lock().surveyed.clone();
        require_identity(found, surveyed.as_deref()).map_err(failed)
    }

    /// Asks for the version and the needed kinds of the cluster.
    async fn ask_facts(&self, identity: String) -> Result<ClusterFacts, slipway_cluster::Error> {
        let connection = self.connection();
        let mut facts = json!({ "kubernetes": connection.server_version().await? });
        let mut missing = Vec::new();
        for (what, versions, plural) in NEEDED {
            let found = served(connection, versions, plural).await?;
            if found.is_none() {
                missing.push(format!("{plural} ({})", versions.join(" or ")));
            }
            facts[what] = json!(found);
        }
        let problem = (!missing.is_empty()).then(|| {
            format!(
                "the cluster does not know {}; install Crossplane v2 and External Secrets there",
                missing.join(", ")
            )
        });
        Ok(ClusterFacts { identity, problem, facts })
    }
}

/// The first of the versions in which the cluster serves the kind.
async fn served(
    connection: &Connection,
    versions: &[&'static str],
    plural: &str,
) -> Result<Option<&'static str>, slipway_cluster::Error> {
    for version in versions {
        if connection.serves(version, plural).await? {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

/// The Ready condition of an object, if it has one.
fn ready(object: &Value) -> Option<Result<(), String>> {
    let conditions = object["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == "Ready")?;
    if condition["status"] == "True" {
        return Some(Ok(()));
    }
    Some(Err(live_object::why(condition).unwrap_or("not ready").to_owned()))
}

#[async_trait]
impl Management for CrossplaneSubstrate {
    /// *Guarantees:* the facts come from the cluster of the identity in them,
    /// which the present client asked for. They are asked for again when they
    /// are ten minutes old, with new credentials, and after any error: a broken
    /// watch, a kind that could not be listed, or a problem in the facts
    /// themselves.
    async fn verify(&self) -> Result<ClusterFacts, Error> {
        let broken = |state: IndexState| matches!(state, IndexState::Broken(_));
        if self.kinds().iter().any(|kind| broken(kind.watch.index.state())) {
            self.verification.forget();
            self.connection().forget_identity();
        }
        let identity = self.connection().identity_within(VERIFIED_FOR).await.map_err(failed)?;
        if let Some(facts) = self.verification.facts(&identity) {
            return Ok(facts);
        }
        let asked_at = Instant::now();
        let facts = self.ask_facts(identity).await.map_err(failed)?;
        if facts.problem.is_none() {
            self.verification.lock().facts = Some((asked_at, facts.clone()));
        }
        Ok(facts)
    }

    fn expect(&self, kinds: &[CompositeType]) {
        self.expect_kinds(kinds);
    }

    async fn survey(
        &self,
        identity: Option<&str>,
        providers: &BTreeSet<String>,
    ) -> Result<SharedObjects, Error> {
        let cluster = self.connection().identity_within(VERIFIED_FOR).await.map_err(failed)?;
        require_identity(&cluster, identity).map_err(failed)?;
        self.verification.lock().surveyed = Some(cluster);
        let plain = |kind| Source { kind, provider: None };
        let mut sources: Vec<_> = [
            SharedKind::Namespace,
            SharedKind::RoleBinding,
            SharedKind::ResourceQuota,
            SharedKind::ExternalSecret,
        ]
        .map(plain)
        .to_vec();
        sources.extend(providers.iter().map(|provider| Source {
            kind: SharedKind::ProviderConfig,
            provider: Some(provider.clone()),
        }));
        let mut observed = SharedObjects::default();
        for source in sources {
            match self.shared_of(&source).await {
                Ok(found) => observed.objects.extend(found),
                Err(error) => {
                    self.verification.forget();
                    self.connection().forget_identity();
                    if error.is_no_answer() {
                        return Err(failed(error));
                    }
                    observed.unreadable.insert(source, error.to_string());
                }
            }
        }
        if !self.verification.finds_again(&observed) {
            // The caller may conclude that an object is gone, which needs an
            // identity of just now.
            self.same_cluster(identity).await.map_err(failed)?;
        }
        self.verification.lock().found = Some(observed.objects.keys().cloned().collect());
        Ok(observed)
    }

    async fn find(&self, key: &SharedKey) -> Result<Option<Seen>, Error> {
        let object = object_of(key);
        let Some(found) = self.connection().get(&object).await.map_err(failed)? else {
            // An absence counts only if this is still the surveyed cluster.
            self.require_surveyed(&self.connection().identity().await.map_err(failed)?)?;
            return Ok(None);
        };
        self.seen(&found).map(Some).ok_or_else(|| no_uid(&object))
    }

    async fn put(&self, shared: &SharedObject) -> Result<Seen, Error> {
        self.require_same_cluster().await?;
        let object = object_of(&shared.wanted.key);
        let found = self.connection().get_metadata(&object).await.map_err(failed)?;
        if let Some(found) = found {
            let labels = found.labels.unwrap_or_default();
            let installation = labels.get(composite::LABEL_INSTALLATION).map(String::as_str);
            if installation != Some(self.installation()) {
                return Err(Error::Conflict(format!(
                    "{object} is there and belongs to {}; it is left alone",
                    installation.unwrap_or("somebody else")
                )));
            }
        }
        let connection = self.permitted().await.map_err(failed)?;
        let answer = connection.apply(&object, &shared.value, FIELD_MANAGER, true).await;
        self.seen(&answer.map_err(failed)?).ok_or_else(|| no_uid(&object))
    }

    async fn remove(&self, key: &SharedKey, uid: &str) -> Result<(), Error> {
        self.require_same_cluster().await?;
        match self.permitted().await.map_err(failed)?.delete(&object_of(key), uid).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_conflict() => Err(Error::Conflict(error.to_string())),
            Err(error) => Err(failed(error)),
        }
    }

    /// Custom resources of every kind that the cluster serves. The placement loop
    /// calls this when its own custom resources in the namespace are gone.
    /// Kubernetes deletes its built-in objects with the namespace, but not what a
    /// controller made of a custom resource.
    async fn residents(&self, namespace: &str) -> Result<Vec<String>, Error> {
        let connection = self.connection();
        let kinds = connection.custom_kinds().await.map_err(failed)?;
        let listed = stream::iter(kinds)
            .map(|kind| async move { residents_of(connection, &kind, namespace).await })
            .buffer_unordered(QUESTIONS)
            .try_collect::<Vec<_>>()
            .await?;
        let mut found: Vec<_> = listed.into_iter().flatten().collect();
        found.sort();
        found.truncate(SHOWN);
        Ok(found)
    }
}

fn no_uid(object: &ObjectRef) -> Error {
    Error::Failed(format!("{object} was answered without a uid"))
}

async fn residents_of(
    connection: &Connection,
    kind: &ApiResource,
    namespace: &str,
) -> Result<Vec<String>, Error> {
    let listing = Listing { namespace: Some(namespace), ..Listing::all(kind) };
    let limit = u32::try_from(SHOWN).unwrap_or(u32::MAX);
    let listed = connection.list_metadata_page(listing, limit, None).await.map_err(|error| {
        let hint = format!(": name {} in rbac.inspectedGroups of the chart", kind.group);
        failed(if error.is_forbidden() { error.with_hint(&hint) } else { error })
    })?;
    let shown = |name: Option<String>| format!("{}/{}", kind.kind, name.unwrap_or_default());
    Ok(listed.items.into_iter().map(|object| shown(object.name)).collect())
}
