//! The objects that a project's resources share in the project namespace. The
//! placement loop applies them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use slipway_core::broker::snapshot::ProviderFacts;
use slipway_core::ids::InstallationId;
use slipway_core::placement::shared_objects::{
    BASE_NAME, Desired, ProjectNamespace, ProviderUse, SharedKey, SharedKind,
};

use crate::provider_config::{self, Home};
use crate::{canonical, external_secret};

/// What the project namespaces have in common.
#[derive(Debug, Clone)]
pub struct PlacementSettings {
    pub installation: InstallationId,
    /// Who gets the role in each namespace: `group:…`, `user:…` or
    /// `serviceaccount:<namespace>/<name>`.
    pub subjects: Vec<Subject>,
    /// The ClusterRole that they get.
    pub role: String,
    /// The hard limits of each namespace.
    pub quota: BTreeMap<String, u64>,
    /// The ClusterSecretStore of the vault.
    pub secret_store: String,
}

impl PlacementSettings {
    pub const DEFAULT_ROLE: &'static str = "slipway-project-viewer";
    pub const DEFAULT_SECRET_STORE: &'static str = "slipway";
}

/// A subject that a role is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

impl Subject {
    /// The error says what is wrong in a sentence that begins with "must".
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const PROBLEM: &str =
            "must be user:<name>, group:<name> or serviceaccount:<namespace>/<name>";
        let (kind, name) = text.split_once(':').ok_or(PROBLEM)?;
        if name.is_empty() {
            return Err(PROBLEM);
        }
        match kind {
            "user" => Ok(Self::User(name.to_owned())),
            "group" => Ok(Self::Group(name.to_owned())),
            "serviceaccount" => match name.split_once('/') {
                Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                    Ok(Self::ServiceAccount {
                        namespace: namespace.to_owned(),
                        name: name.to_owned(),
                    })
                }
                _ => Err(PROBLEM),
            },
            _ => Err(PROBLEM),
        }
    }

    fn render(&self) -> Value {
        let of = |kind: &str, name: &str| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name });
        match self {
            Self::User(name) => of("User", name),
            Self::Group(name) => of("Group", name),
            Self::ServiceAccount { namespace, name } => {
                json!({ "kind": "ServiceAccount", "namespace": namespace, "name": name })
            }
        }
    }
}

/// An object to be applied.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedObject {
    pub wanted: Desired,
    pub value: Value,
}

/// How often the removal of the object was taken back. It makes an apply that
/// does so change the object, see `slipway_core::placement::rules::namespace`.
pub const ANNOTATION_REMOVALS: &str = "slipway.dev/removals-taken-back";

/// Everything that a project should have there, in the order of creation.
/// Nothing for a project that leaves its cluster.
pub fn objects(
    project_namespace: &ProjectNamespace,
    settings: &PlacementSettings,
) -> Vec<SharedObject> {
    if project_namespace.is_leaving() {
        return Vec::new();
    }
    let namespace = &*project_namespace.assignment.namespace;
    let home = Home {
        installation: settings.installation,
        project: project_namespace.assignment.project_id,
        namespace,
    };
    // A ProviderConfig has a provider, and the name of a secret that it reads.
    let object = |kind, name: &str, reads: Option<(&str, &str)>, mut value: Value| {
        let key = SharedKey {
            namespace: namespace.to_owned(),
            kind,
            name: name.to_owned(),
            provider: reads.map(|(provider, _)| provider.to_owned()),
        };
        let count = project_namespace.assignment.status.removals_of(&key);
        if count > 0 {
            value["metadata"]["annotations"] = json!({ ANNOTATION_REMOVALS: count.to_string() });
        }
        let secret = reads.map(|(_, secret)| secret.to_owned());
        SharedObject { wanted: Desired { key, secret, hash: hash(&value) }, value }
    };
    let mut objects = vec![object(SharedKind::Namespace, namespace, None, namespace_of(&home))];
    if !settings.subjects.is_empty() {
        objects.push(object(
            SharedKind::RoleBinding,
            BASE_NAME,
            None,
            role_binding(&home, settings),
        ));
    }
    if !settings.quota.is_empty() {
        objects.push(object(SharedKind::ResourceQuota, BASE_NAME, None, quota(&home, settings)));
    }
    for used in &project_namespace.uses {
        let facts = facts(used);
        let name = provider_config::secret_name(&facts);
        let secret = external_secret::render(&home, &facts, &settings.secret_store);
        let secret = object(SharedKind::ExternalSecret, &name, None, secret);
        // Two ProviderConfigs may read one.
        if !objects.contains(&secret) {
            objects.push(secret);
        }
        let config = provider_config::render(&home, &used.config, &facts);
        let reads = Some((&*used.provider, &*name));
        objects.push(object(SharedKind::ProviderConfig, &used.config, reads, config));
    }
    objects
}

/// The count of removals that an object carries.
pub fn removals(object: &Value) -> u64 {
    let count = object["metadata"]["annotations"][ANNOTATION_REMOVALS].as_str();
    count.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Hash over what we own of an object: its labels, its count of removals and
/// everything but type, metadata and status. Equal for a rendered object and for a live one
/// projected on the fields that we own.
pub fn hash(object: &Value) -> String {
    let mut hashed = Map::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        if !["apiVersion", "kind", "metadata", "status"].contains(&&**name) {
            hashed.insert(name.clone(), value.clone());
        }
    }
    hashed.insert("labels".to_owned(), object["metadata"]["labels"].clone());
    // Without it, if there is none: the hash stays what earlier versions wrote.
    if let count @ 1.. = removals(object) {
        hashed.insert("removals".to_owned(), count.into());
    }
    canonical::hash(&Value::Object(hashed))
}

fn namespace_of(home: &Home<'_>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": home.namespace, "labels": home.labels() },
    })
}

fn role_binding(home: &Home<'_>, settings: &PlacementSettings) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": { "name": BASE_NAME, "namespace": home.namespace, "labels": home.labels() },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": settings.role,
        },
        "subjects": settings.subjects.iter().map(Subject::render).collect::<Vec<_>>(),
    })
}

fn quota(home: &Home<'_>, settings: &PlacementSettings) -> Value {
    let hard: Map<_, _> = settings
        .quota
        .iter()
        .map(|(name, count)| (name.clone(), json!(count.to_string())))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": { "name": BASE_NAME, "namespace": home.namespace, "labels": home.labels() },
        "spec": { "hard": hard },
    })
}

/// Without labels: those belong to one resource, and many share this.
fn facts(used: &ProviderUse) -> ProviderFacts {
    ProviderFacts {
        cloud_id: used.cloud_id,
        provider: used.provider.clone(),
        endpoint: used.endpoint.clone(),
        credential_id: used.credential_id,
        kv_mount: used.kv_mount.clone(),
        kv_path: used.kv_path.clone(),
        labels: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use slipway_core::fixtures::{at, mk_provider_facts};
    use slipway_core::ids::{ClusterId, Revision};
    use slipway_core::placement::cluster::ClusterAssignment;
    use slipway_core::placement::namespace::{NamespacePhase, NamespaceStatus};
    use uuid::Uuid;

    use super::*;
    use crate::provider_config::tests::mk_home;

    #[test]
    fn a_subject_is_one_of_three_kinds() {
        assert_eq!(Subject::parse("group:a:b"), Ok(Subject::Group("a:b".to_owned())));
        assert_eq!(Subject::parse("user:jane"), Ok(Subject::User("jane".to_owned())));
        let account = Subject::ServiceAccount { namespace: "ns".to_owned(), name: "n".to_owned() };
        assert_eq!(Subject::parse("serviceaccount:ns/n"), Ok(account));
        for bad in ["jane", "user:", "robot:x", "serviceaccount:n", "serviceaccount:/n", ""] {
            assert!(Subject::parse(bad).is_err(), "{bad}");
        }
    }

    /// The shared ProviderConfig and that of the same credential read one secret.
    #[test]
    fn each_config_is_rendered_with_its_secret_once() {
        let facts = mk_provider_facts();
        let used = |config: &str, kv_path: &str| ProviderUse {
            provider: facts.provider.clone(),
            config: config.to_owned(),
            cloud_id: facts.cloud_id,
            endpoint: facts.endpoint.clone(),
            credential_id: facts.credential_id,
            kv_mount: facts.kv_mount.clone(),
            kv_path: kv_path.to_owned(),
        };
        let uses = vec![used("hetzner", "one"), used("hetzner-1", "one"), used("hetzner-2", "two")];
        let project_namespace = ProjectNamespace {
            now: at(1_000),
            assignment: ClusterAssignment {
                project_id: mk_home().project,
                cluster_id: ClusterId::new(Uuid::from_u128(8)),
                namespace: mk_home().namespace.to_owned(),
                namespace_phase: NamespacePhase::Ready,
                withdrawn_at: None,
                status: NamespaceStatus::default(),
                revision: Revision::FIRST,
                created_at: at(900),
                updated_at: at(900),
            },
            project_deleted_at: None,
            resources: 3,
            uses,
        };
        let settings = PlacementSettings {
            installation: mk_home().installation,
            subjects: Vec::new(),
            role: PlacementSettings::DEFAULT_ROLE.to_owned(),
            quota: BTreeMap::new(),
            secret_store: PlacementSettings::DEFAULT_SECRET_STORE.to_owned(),
        };
        let objects = objects(&project_namespace, &settings);
        let of = |kind| objects.iter().filter(move |object| object.wanted.key.kind == kind);
        let secrets: Vec<_> =
            of(SharedKind::ExternalSecret).map(|object| &object.wanted.key.name).collect();
        let [one, two] = secrets[..] else { panic!("two secrets: {secrets:?}") };
        let configs: Vec<_> = of(SharedKind::ProviderConfig)
            .map(|SharedObject { wanted, value }| {
                let reads = &value["spec"]["credentials"]["secretRef"]["name"];
                assert_eq!(wanted.secret.as_deref(), reads.as_str());
                assert_eq!(value["metadata"]["name"], wanted.key.name);
                (&*wanted.key.name, wanted.secret.as_ref().unwrap())
            })
            .collect();
        assert_eq!(configs, [("hetzner", one), ("hetzner-1", one), ("hetzner-2", two)]);
    }

    #[test]
    fn the_hash_passes_over_what_the_server_adds() {
        let rendered = json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": { "name": "q", "labels": { "a": "b" } },
            "spec": { "hard": { "count/secrets": "3" } },
        });
        let mut live = rendered.clone();
        live["metadata"]["uid"] = json!("u");
        live["status"] = json!({ "used": {} });
        assert_eq!(hash(&rendered), hash(&live));
        live["metadata"]["annotations"] = json!({ "somebody": "else" });
        assert_eq!(hash(&rendered), hash(&live));
        let mut taken_back = live.clone();
        taken_back["metadata"]["annotations"][ANNOTATION_REMOVALS] = json!("1");
        assert_ne!(hash(&rendered), hash(&taken_back));
        live["spec"]["hard"]["count/secrets"] = json!("4");
        assert_ne!(hash(&rendered), hash(&live));
    }
}
