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
    ApiResource, Connection, DynamicObject, IndexState, Listing, ObjectMeta, ObjectRef, Version,
    api_resource, require_identity,
};
use slipway_core::catalog::blueprint_version::CompositeType;
use slipway_core::placement::cluster::ClusterAssignment;
use slipway_core::placement::rules::namespace::Removal;
use slipway_core::placement::rules::residents::{self, Resident};
use slipway_core::placement::shared_objects::{Seen, SharedKey, SharedKind, SharedObjects, Source};
use slipway_render::shared::SharedObject;
use slipway_render::{composite, external_secret, provider_config, shared};

use super::engine::{CrossplaneSubstrate, RECENT, failed};
use super::live_object;

/// How long the identity, the version and the kinds of a cluster are reused
/// while no error occurs there.
pub(super) const VERIFIED_FOR: Duration = Duration::from_secs(600);

/// Parallel requests to one server.
const QUESTIONS: usize = 8;

/// Objects that are named of a namespace that is not empty.
const SHOWN: usize = 10;

/// Objects in one page of the list of a kind in a namespace.
const PAGE: u32 = 100;

/// Attempts when somebody else writes an object between our read and our write.
const RETRIES: usize = 4;

/// Kubernetes names the ServiceAccount of a token in this annotation.
const ANNOTATION_ACCOUNT: &str = "kubernetes.io/service-account.name";

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
        let Version { uid, resource_version } = Version::of(&object.metadata)?;
        Some(Seen {
            uid,
            version: resource_version,
            removals: shared::removals(&whole),
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

    /// *Guarantees:* a create fails if anything is there, an update if the object
    /// was written since it was read. Both then read again.
    async fn put(&self, shared: &SharedObject) -> Result<Seen, Error> {
        self.require_same_cluster().await?;
        let object = object_of(&shared.wanted.key);
        let body = &shared.value;
        for _ in 0..RETRIES {
            let found = self.connection().get_metadata(&object).await.map_err(failed)?;
            let read = match found {
                None => None,
                Some(found) => {
                    self.require_writable(&found, &object)?;
                    Some(Version::of(&found).ok_or_else(|| no_uid(&object))?)
                }
            };
            let written = self.put_applied(&object, read, body).await;
            match written {
                Ok(answer) => return self.seen(&answer).ok_or_else(|| no_uid(&object)),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(Error::Conflict(format!(
            "could not apply {object}: somebody else keeps writing it; it is tried again"
        )))
    }

    async fn remove(&self, removal: &Removal) -> Result<(), Error> {
        self.require_same_cluster().await?;
        let read = Version { uid: removal.uid.clone(), resource_version: removal.version.clone() };
        let object = object_of(&removal.key);
        match self.permitted(async |to| to.delete_unchanged(&object, &read).await).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_conflict() => Err(Error::Conflict(error.to_string())),
            Err(error) => Err(failed(error)),
        }
    }

    /// *Expected flow:* ask which kinds the cluster serves, in every version →
    /// list each of them in the namespace.
    /// *Caveats:* Secrets are listed only if our account may list them; the
    /// shipped one may not, on purpose. An object that somebody creates after its
    /// kind was listed goes with the namespace.
    async fn residents(&self, assignment: &ClusterAssignment) -> Result<Vec<Resident>, Error> {
        let connection = self.connection();
        let mut kinds = connection.namespaced_kinds(residents::may_hold).await.map_err(failed)?;
        let namespace = Some(&*assignment.namespace);
        if !connection.may("list", residents::SECRETS, namespace).await.map_err(failed)? {
            kinds.retain(|kind| (&*kind.group, &*kind.plural) != residents::SECRETS);
        }
        let listed = stream::iter(kinds)
            .map(|kind| async move { self.residents_of(&kind, assignment).await })
            .buffer_unordered(QUESTIONS)
            .try_collect::<Vec<_>>()
            .await?;
        let mut found: Vec<_> = listed.into_iter().flatten().collect();
        found.sort_by_key(residents::shown);
        found.truncate(SHOWN);
        Ok(found)
    }
}

impl CrossplaneSubstrate {
    /// Refuses an object of somebody else, and one that is being deleted.
    fn require_writable(&self, found: &ObjectMeta, object: &ObjectRef) -> Result<(), Error> {
        let labels = found.labels.as_ref();
        let installation = labels.and_then(|labels| labels.get(composite::LABEL_INSTALLATION));
        if installation.map(String::as_str) != Some(self.installation()) {
            return Err(Error::Conflict(format!(
                "{object} is there and belongs to {}; it is left alone",
                installation.map_or("somebody else", String::as_str)
            )));
        }
        if found.deletion_timestamp.is_some() {
            return Err(Error::Conflict(format!(
                "{object} is being deleted; Slipway creates it again once it is gone"
            )));
        }
        Ok(())
    }

    /// The objects of one kind that hold the namespace, from the first page that
    /// has any.
    async fn residents_of(
        &self,
        kind: &ApiResource,
        assignment: &ClusterAssignment,
    ) -> Result<Vec<Resident>, Error> {
        let listing = Listing { namespace: Some(&assignment.namespace), ..Listing::all(kind) };
        let mut token = None;
        loop {
            let page = self.connection().list_metadata_page(listing, PAGE, token).await;
            let page = page.map_err(|error| failed(with_remedy(error, kind)))?;
            let found = page.items.into_iter().map(|object| self.resident(kind, object));
            let found: Vec<_> = found.filter(|one| residents::holds(one, assignment)).collect();
            token = page.next;
            if !found.is_empty() || token.is_none() {
                return Ok(found);
            }
        }
    }

    fn resident(&self, kind: &ApiResource, object: ObjectMeta) -> Resident {
        let label = |name: &str| object.labels.as_ref().and_then(|labels| labels.get(name));
        let ours = label(composite::LABEL_INSTALLATION).is_some_and(|id| id == self.installation());
        let project = label(composite::LABEL_PROJECT).filter(|_| ours);
        let annotations = object.annotations.as_ref();
        let owners = object.owner_references.iter().flatten();
        Resident {
            group: kind.group.clone(),
            plural: kind.plural.clone(),
            kind: kind.kind.clone(),
            project: project.and_then(|text| text.parse().ok()),
            token_of: annotations.and_then(|all| all.get(ANNOTATION_ACCOUNT)).cloned(),
            owners: owners.map(|owner| (owner.kind.clone(), owner.name.clone())).collect(),
            name: object.name.unwrap_or_default(),
        }
    }
}

/// The right that our account lacks, and where to grant it.
fn with_remedy(error: slipway_cluster::Error, kind: &ApiResource) -> slipway_cluster::Error {
    if !error.is_forbidden() {
        return error;
    }
    match &*kind.group {
        "" => {
            error.with_hint(": install the roles of this version, deploy/rbac/control-plane.yaml")
        }
        group => error.with_hint(&format!(": name {group} in rbac.inspectedGroups of the chart")),
    }
}

pub(super) fn no_uid(object: &ObjectRef) -> Error {
    Error::Failed(format!("{object} was answered without a uid"))
}
