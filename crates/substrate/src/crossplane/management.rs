//! The management port on a cluster: what the resources of a project share.

use std::collections::BTreeSet;

use async_trait::async_trait;
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions,
};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use slipway_app::ports::Management;
use slipway_app::ports::management::ClusterFacts;
use slipway_app::ports::substrate::Error;
use slipway_core::blueprint::CompositeType;
use slipway_core::fleet::{Seen, SharedKey, SharedKind, Sight, Source};
use slipway_render::shared::SharedObject;
use slipway_render::{composite, external_secret, provider_config, shared};

use super::engine::CrossplaneSubstrate;
use super::watch::PAGE;
use super::{FIELD_MANAGER, fold, trouble};

/// Questions to one server at a time.
const QUESTIONS: usize = 8;

/// Who is shown of a namespace that is not empty.
const SHOWN: usize = 10;

/// The kinds without which no project can live on a cluster: what they are for,
/// the versions that will do, and the plural.
const NEEDED: [(&str, &[&str], &str); 3] = [
    (
        "crossplane",
        &["apiextensions.crossplane.io/v2", "apiextensions.crossplane.io/v1"],
        "compositeresourcedefinitions",
    ),
    ("compositions", &["apiextensions.crossplane.io/v1"], "compositions"),
    ("external_secrets", &[external_secret::API_VERSION], "externalsecrets"),
];

fn resource(source: &Source) -> ApiResource {
    let of = |group: &str, version: &str, kind: &str, plural: &str| ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        },
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    let split = |api_version: &str, kind: &str, plural: &str| {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        of(group, version, kind, plural)
    };
    match source.kind {
        SharedKind::Namespace => of("", "v1", "Namespace", "namespaces"),
        SharedKind::ResourceQuota => of("", "v1", "ResourceQuota", "resourcequotas"),
        SharedKind::RoleBinding => {
            of("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
        }
        SharedKind::ExternalSecret => {
            split(external_secret::API_VERSION, external_secret::KIND, "externalsecrets")
        }
        SharedKind::ProviderConfig => {
            let provider = source.provider.as_deref().unwrap_or_default();
            split(&provider_config::api_version(provider), "ProviderConfig", "providerconfigs")
        }
    }
}

fn api_of(client: Client, key: &SharedKey) -> Api<DynamicObject> {
    let resource = resource(&key.source());
    match key.kind {
        SharedKind::Namespace => Api::all_with(client, &resource),
        _ => Api::namespaced_with(client, &key.namespace, &resource),
    }
}

impl CrossplaneSubstrate {
    async fn shared_client(&self) -> Result<Client, Error> {
        self.connection().client().await.map_err(Error::Failed)
    }

    fn seen(&self, object: &DynamicObject) -> Option<Seen> {
        let whole = serde_json::to_value(object).ok()?;
        let ours = composite::installation(&whole) == Some(self.installation());
        let project = whole["metadata"]["labels"][composite::LABEL_PROJECT].as_str();
        Some(Seen {
            uid: object.uid()?,
            owner: project.filter(|_| ours).and_then(|text| text.parse().ok()),
            hash: Some(shared::hash(&fold::ours(&whole))),
            terminating: object.metadata.deletion_timestamp.is_some(),
            ready: ready(&whole),
        })
    }

    /// All objects of a kind that carry our installation.
    async fn shared_of(
        &self,
        client: Client,
        source: &Source,
    ) -> Result<Vec<(SharedKey, Seen)>, kube::Error> {
        let api = Api::<DynamicObject>::all_with(client, &resource(source));
        let mut parameters = ListParams::default().labels(&self.selector()).limit(PAGE);
        let mut found = Vec::new();
        loop {
            let page = trouble::within(api.list(&parameters)).await?;
            for object in &page.items {
                let name = object.name_any();
                let key = SharedKey {
                    namespace: object.namespace().unwrap_or_else(|| name.clone()),
                    kind: source.kind,
                    provider: source.provider.clone(),
                    name,
                };
                found.extend(self.seen(object).map(|seen| (key, seen)));
            }
            parameters.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if parameters.continue_token.is_none() {
                return Ok(found);
            }
        }
    }
}

/// What an object says of itself by a Ready condition.
fn ready(object: &Value) -> Option<Result<(), String>> {
    let conditions = object["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == "Ready")?;
    if condition["status"] == "True" {
        return Some(Ok(()));
    }
    Some(Err(fold::why(condition).unwrap_or("not ready").to_owned()))
}

#[async_trait]
impl Management for CrossplaneSubstrate {
    async fn verify(&self) -> Result<ClusterFacts, Error> {
        let identity = self.connection().identity().await.map_err(Error::Failed)?;
        let client = self.shared_client().await?;
        let version = trouble::within(client.apiserver_version())
            .await
            .map_err(|error| Error::Failed(trouble::describe("ask for its version", &error)))?;
        let mut facts = json!({ "kubernetes": version.git_version });
        let mut missing = Vec::new();
        for (what, versions, plural) in NEEDED {
            let mut found = None;
            for version in versions {
                let served = match trouble::within(client.list_api_group_resources(version)).await {
                    Ok(listed) => listed.resources.iter().any(|resource| resource.name == plural),
                    Err(error) if trouble::is_not_found(&error) => false,
                    // What could not be asked is not missing.
                    Err(error) => {
                        let asking = format!("ask whether it knows {plural} ({version})");
                        return Err(Error::Failed(trouble::describe(&asking, &error)));
                    }
                };
                if served {
                    found = Some(*version);
                    break;
                }
            }
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

    fn expect(&self, kinds: &[CompositeType]) {
        self.expect_kinds(kinds);
    }

    async fn survey(
        &self,
        identity: Option<&str>,
        providers: &BTreeSet<String>,
    ) -> Result<Sight, Error> {
        self.same_cluster(identity).await.map_err(Error::Failed)?;
        let client = self.shared_client().await?;
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
        let mut sight = Sight::default();
        for source in sources {
            match self.shared_of(client.clone(), &source).await {
                Ok(found) => sight.objects.extend(found),
                Err(error) if trouble::is_silence(&error) => {
                    return Err(Error::Failed(trouble::describe("look at the fleet", &error)));
                }
                Err(error) => {
                    let what =
                        format!("list {}.{}", resource(&source).plural, resource(&source).group);
                    sight.unreadable.insert(source, trouble::describe(&what, &error));
                }
            }
        }
        Ok(sight)
    }

    async fn find(&self, key: &SharedKey) -> Result<Option<Seen>, Error> {
        let shown = format!("{} {}", key.kind, key.name);
        let api = api_of(self.shared_client().await?, key);
        match trouble::within(api.get(&key.name)).await {
            Ok(found) => match self.seen(&found) {
                Some(seen) => Ok(Some(seen)),
                None => Err(Error::Failed(format!("{shown} was answered without a uid"))),
            },
            Err(error) if trouble::is_gone(&error, &resource(&key.source()).plural, &key.name) => {
                Ok(None)
            }
            Err(error) => Err(Error::Failed(trouble::describe(&format!("read {shown}"), &error))),
        }
    }

    async fn put(&self, object: &SharedObject) -> Result<Seen, Error> {
        let key = &object.wanted.key;
        let api = api_of(self.shared_client().await?, key);
        let shown = format!("{} {}", key.kind, key.name);
        let failed = |what: &str, error: &kube::Error| {
            Error::Failed(trouble::describe(&format!("{what} {shown}"), error))
        };
        let there = trouble::within(api.get_metadata_opt(&key.name))
            .await
            .map_err(|error| failed("read", &error))?;
        let installation = |labels: &std::collections::BTreeMap<String, String>| {
            labels.get(composite::LABEL_INSTALLATION).cloned()
        };
        if let Some(there) = there
            && installation(there.labels()).as_deref() != Some(self.installation())
        {
            return Err(Error::Conflict(format!(
                "{shown} is there and belongs to {}; it is left alone",
                installation(there.labels()).unwrap_or_else(|| "somebody else".to_owned())
            )));
        }
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let patch = Patch::Apply(&object.value);
        let put = trouble::within(api.patch(&key.name, &parameters, &patch)).await;
        let put = put.map_err(|error| failed("apply", &error))?;
        self.seen(&put).ok_or_else(|| Error::Failed(format!("{shown} was answered without a uid")))
    }

    async fn remove(&self, key: &SharedKey, uid: &str) -> Result<(), Error> {
        let api = api_of(self.shared_client().await?, key);
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let parameters = DeleteParams::background().preconditions(preconditions);
        let plural = resource(&key.source()).plural;
        match trouble::within(api.delete(&key.name, &parameters)).await {
            Ok(_) => Ok(()),
            Err(error) if trouble::is_gone(&error, &plural, &key.name) => Ok(()),
            Err(error) => {
                let what = format!("delete {} {}", key.kind, key.name);
                let told = trouble::describe(&what, &error);
                Err(if trouble::is_conflict(&error) {
                    Error::Conflict(told)
                } else {
                    Error::Failed(told)
                })
            }
        }
    }

    /// Custom resources of every kind that the cluster knows, but for what the
    /// fleet itself put there. What Kubernetes brings along goes with a
    /// namespace; what a controller made of a custom resource does not.
    async fn residents(&self, namespace: &str) -> Result<Vec<String>, Error> {
        let client = self.shared_client().await?;
        let kinds = custom_kinds(&client).await?;
        let listed = stream::iter(kinds)
            .map(|kind| {
                let client = client.clone();
                async move { inhabitants(client, &kind, namespace).await }
            })
            .buffer_unordered(QUESTIONS)
            .try_collect::<Vec<_>>()
            .await?;
        let mut found: Vec<_> = listed.into_iter().flatten().collect();
        found.sort();
        found.truncate(SHOWN);
        Ok(found)
    }
}

/// The namespaced kinds of groups that somebody installed.
async fn custom_kinds(client: &Client) -> Result<Vec<ApiResource>, Error> {
    let failed =
        |error: kube::Error| Error::Failed(trouble::describe("ask which kinds there are", &error));
    let mut kinds = Vec::new();
    for group in trouble::within(client.list_api_groups()).await.map_err(failed)?.groups {
        let built_in = !group.name.contains('.') || group.name.ends_with(".k8s.io");
        let Some(version) = group.preferred_version.as_ref().or(group.versions.first()) else {
            continue;
        };
        if built_in {
            continue;
        }
        let listed = trouble::within(client.list_api_group_resources(&version.group_version))
            .await
            .map_err(failed)?;
        for resource in listed.resources {
            let listable = resource.verbs.iter().any(|verb| verb == "list");
            if resource.namespaced && listable && !resource.name.contains('/') {
                kinds.push(ApiResource {
                    group: group.name.clone(),
                    version: version.version.clone(),
                    api_version: version.group_version.clone(),
                    kind: resource.kind,
                    plural: resource.name,
                });
            }
        }
    }
    Ok(kinds)
}

async fn inhabitants(
    client: Client,
    kind: &ApiResource,
    namespace: &str,
) -> Result<Vec<String>, Error> {
    let api = Api::<DynamicObject>::namespaced_with(client, namespace, kind);
    let parameters = ListParams::default().limit(u32::try_from(SHOWN).unwrap_or(u32::MAX));
    let listed = trouble::within(api.list_metadata(&parameters)).await.map_err(|error| {
        let what = format!("look whether {}.{} are left in {namespace}", kind.plural, kind.group);
        let mut told = trouble::describe(&what, &error);
        if trouble::is_forbidden(&error) {
            told.push_str(&format!(": name {} in rbac.inspectedGroups of the chart", kind.group));
        }
        Error::Failed(told)
    })?;
    Ok(listed.items.iter().map(|object| format!("{}/{}", kind.kind, object.name_any())).collect())
}
