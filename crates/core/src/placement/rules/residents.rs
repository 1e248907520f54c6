//! Which objects keep a project namespace from being deleted. Everything does,
//! except what the placement loop made there and a named list of what Kubernetes
//! makes in every namespace by itself.

use crate::ids::ProjectId;
use crate::placement::cluster::ClusterAssignment;
use crate::placement::shared_objects::{BASE_NAME, SharedKey, SharedKind};

/// An object in a project namespace, by its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resident {
    /// The API group, empty for the core group.
    pub group: String,
    pub plural: String,
    pub kind: String,
    pub name: String,
    /// The project in its labels, if it carries our installation.
    pub project: Option<ProjectId>,
    /// The ServiceAccount in its annotations, if it is the token of one.
    pub token_of: Option<String>,
    /// Kind and name of its owners.
    pub owners: Vec<(String, String)>,
}

/// Kinds that Kubernetes fills by itself, from what else is in a namespace: group
/// and plural. They are not even listed.
const MADE_BY_KUBERNETES: [(&str, &str); 4] = [
    ("", "events"),
    ("events.k8s.io", "events"),
    ("", "endpoints"),
    ("discovery.k8s.io", "endpointslices"),
];

/// The group whose objects are computed when somebody asks. Its server is often
/// away, which says nothing about a namespace.
const METRICS: &str = "metrics.k8s.io";

/// The ServiceAccount of every namespace.
const DEFAULT_ACCOUNT: &str = "default";

/// The ConfigMap with the certificate of the cluster in every namespace.
const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";

/// The kind that our account may have no right on: group and plural.
pub const SECRETS: (&str, &str) = ("", "secrets");

/// Whether objects of a kind may hold a namespace; for the plural `*`, whether
/// any of its group may.
pub fn may_hold(group: &str, plural: &str) -> bool {
    group != METRICS && !MADE_BY_KUBERNETES.contains(&(group, plural))
}

/// Whether the object keeps the namespace of this assignment.
pub fn holds(resident: &Resident, assignment: &ClusterAssignment) -> bool {
    may_hold(&resident.group, &resident.plural)
        && !is_of_every_namespace(resident)
        && !is_made_by_placement(resident, assignment)
}

/// As people read it.
pub fn shown(resident: &Resident) -> String {
    format!("{}/{}", resident.kind, resident.name)
}

fn is_of_every_namespace(resident: &Resident) -> bool {
    match (&*resident.group, &*resident.plural) {
        ("", "serviceaccounts") => resident.name == DEFAULT_ACCOUNT,
        ("", "configmaps") => resident.name == ROOT_CERTIFICATE,
        SECRETS => resident.token_of.as_deref() == Some(DEFAULT_ACCOUNT),
        _ => false,
    }
}

/// The RoleBinding and the ResourceQuota go with the namespace. ProviderConfigs
/// and ExternalSecrets are removed before it, so one that is there holds it. The
/// Secret of an ExternalSecret that the loop removed goes by itself.
fn is_made_by_placement(resident: &Resident, assignment: &ClusterAssignment) -> bool {
    match (&*resident.group, &*resident.plural) {
        ("rbac.authorization.k8s.io", "rolebindings") | ("", "resourcequotas") => {
            resident.name == BASE_NAME && resident.project == Some(assignment.project_id)
        }
        SECRETS => resident.owners.iter().any(|(kind, name)| {
            let key = SharedKey {
                namespace: assignment.namespace.clone(),
                kind: SharedKind::ExternalSecret,
                name: name.clone(),
                provider: None,
            };
            kind == SharedKind::ExternalSecret.as_str() && assignment.status.removals_of(&key) > 0
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use uuid::Uuid;

    use super::*;
    use crate::fixtures::at;
    use crate::ids::{ClusterId, Revision};
    use crate::placement::namespace::{NamespacePhase, NamespaceStatus};

    const PROJECT: ProjectId = ProjectId::new(Uuid::from_u128(7));

    fn assignment() -> ClusterAssignment {
        let removals = BTreeMap::from([("ExternalSecret/cloud-credentials-1".to_owned(), 1)]);
        ClusterAssignment {
            project_id: PROJECT,
            cluster_id: ClusterId::new(Uuid::from_u128(8)),
            namespace: "slipway-project-7".to_owned(),
            namespace_phase: NamespacePhase::Terminating,
            withdrawn_at: None,
            status: NamespaceStatus { removals, ..NamespaceStatus::default() },
            revision: Revision::FIRST,
            created_at: at(900),
            updated_at: at(900),
        }
    }

    fn resident(group: &str, plural: &str, name: &str) -> Resident {
        Resident {
            group: group.to_owned(),
            plural: plural.to_owned(),
            kind: plural.to_owned(),
            name: name.to_owned(),
            project: None,
            token_of: None,
            owners: Vec::new(),
        }
    }

    #[test]
    fn everything_holds_a_namespace_that_nobody_makes_in_every_one() {
        for (group, plural, name) in [
            ("", "pods", "p"),
            ("", "persistentvolumeclaims", "data"),
            ("", "services", "s"),
            ("", "configmaps", "settings"),
            ("", "serviceaccounts", "builder"),
            ("", "secrets", "password"),
            ("", "resourcequotas", "slipway-project"),
            ("apps", "deployments", "d"),
            ("batch", "jobs", "j"),
            ("networking.k8s.io", "ingresses", "i"),
            ("snapshot.storage.k8s.io", "volumesnapshots", "v"),
            ("external-secrets.io", "pushsecrets", "p"),
            ("external-secrets.io", "externalsecrets", "e"),
            ("rbac.authorization.k8s.io", "rolebindings", "slipway-project"),
            ("nodes.example.org", "xservers", "pr-1"),
        ] {
            assert!(holds(&resident(group, plural, name), &assignment()), "{group}/{plural}");
        }
    }

    #[test]
    fn what_kubernetes_makes_by_itself_does_not_hold() {
        for (group, plural, name) in [
            ("", "events", "e"),
            ("events.k8s.io", "events", "e"),
            ("", "endpoints", "s"),
            ("discovery.k8s.io", "endpointslices", "s-1"),
            ("metrics.k8s.io", "pods", "p"),
            ("", "serviceaccounts", "default"),
            ("", "configmaps", "kube-root-ca.crt"),
        ] {
            assert!(!holds(&resident(group, plural, name), &assignment()), "{group}/{plural}");
        }
        let token = |account: &str| Resident {
            token_of: Some(account.to_owned()),
            ..resident("", "secrets", "default-token-x")
        };
        assert!(!holds(&token("default"), &assignment()));
        assert!(holds(&token("builder"), &assignment()));
        assert!(may_hold("events.k8s.io", "*") && !may_hold("metrics.k8s.io", "*"));
    }

    #[test]
    fn what_the_placement_loop_made_does_not_hold() {
        for (group, plural) in
            [("rbac.authorization.k8s.io", "rolebindings"), ("", "resourcequotas")]
        {
            let ours = Resident { project: Some(PROJECT), ..resident(group, plural, BASE_NAME) };
            assert!(!holds(&ours, &assignment()), "{plural}");
            let other_name = Resident { name: "mine".to_owned(), ..ours.clone() };
            assert!(holds(&other_name, &assignment()), "the labels alone are easily copied");
            let another = Some(ProjectId::new(Uuid::from_u128(9)));
            assert!(holds(&Resident { project: another, ..ours }, &assignment()));
        }
        let owned = |kind: &str, name: &str| Resident {
            owners: vec![(kind.to_owned(), name.to_owned())],
            ..resident("", "secrets", "s")
        };
        assert!(!holds(&owned("ExternalSecret", "cloud-credentials-1"), &assignment()));
        assert!(holds(&owned("ExternalSecret", "theirs"), &assignment()));
        assert!(holds(&owned("Deployment", "cloud-credentials-1"), &assignment()));
    }
}
