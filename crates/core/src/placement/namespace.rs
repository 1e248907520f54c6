//! Where a project's substrate runs: its management cluster and its project
//! namespace there. Nothing is applied before that namespace is ready; waiting
//! for it is a blocker, not an error.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::blocker::BlockerCode;
use crate::catalog::blueprint_version::{BlueprintVersion, Engine};
use crate::closed_set::closed_set;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{CloudCredentialId, ClusterId};
use crate::placement::cluster::ClusterAccess;
use crate::placement::provider_config;
use crate::placement::shared_objects::SharedKey;
use crate::time::Timestamp;

closed_set!(
    /// The lifecycle of a project namespace.
    NamespacePhase {
        Pending => "Pending",
        Provisioning => "Provisioning",
        Ready => "Ready",
        Degraded => "Degraded",
        Terminating => "Terminating",
        Deleted => "Deleted",
    }
);

closed_set!(
    /// Whether the resources of a project can reach a provider's cloud.
    ProviderPhase {
        /// Its ProviderConfig or its secret is not in place yet.
        Waiting => "Waiting",
        Ready => "Ready",
        /// Nothing uses it any more, and it is being removed. It must be set up
        /// again before the next use.
        Releasing => "Releasing",
    }
);

/// The status of one ProviderConfig in a project namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredProviderStatus")]
pub struct ProviderStatus {
    pub provider: String,
    /// The name of the ProviderConfig.
    pub config: String,
    pub credential_id: CloudCredentialId,
    pub phase: ProviderPhase,
    /// Why it is not Ready, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The same as a row has it: one of an earlier version does not name the ProviderConfig,
/// which has the name of the provider.
#[derive(Deserialize)]
struct StoredProviderStatus {
    provider: String,
    config: Option<String>,
    credential_id: CloudCredentialId,
    phase: ProviderPhase,
    problem: Option<String>,
}

impl From<StoredProviderStatus> for ProviderStatus {
    fn from(stored: StoredProviderStatus) -> Self {
        let StoredProviderStatus { provider, config, credential_id, phase, problem } = stored;
        let config = config.unwrap_or_else(|| provider_config::name(&provider, None));
        Self { provider, config, credential_id, phase, problem }
    }
}

/// What the placement loop last observed of a project namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceStatus {
    /// The uid of the namespace, once it exists. Only that one is ever deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_uid: Option<String>,
    #[serde(default)]
    pub providers: Vec<ProviderStatus>,
    /// What keeps the namespace from its goal, for people.
    #[serde(default)]
    pub problems: Vec<String>,
    /// For each object whose removal was decided, how many times that was taken
    /// back or may have to be, see [`crate::placement::rules::namespace`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub removals: BTreeMap<String, u64>,
    /// Until when a create of the namespace may land that nobody answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_lands_until: Option<Timestamp>,
}

impl NamespaceStatus {
    /// The same, if that time is not over.
    pub fn pending_create(&self, now: Timestamp) -> Option<Timestamp> {
        self.create_lands_until.filter(|until| *until > now)
    }

    /// The count that the object must carry to be used.
    pub fn removals_of(&self, key: &SharedKey) -> u64 {
        self.removals.get(&key.counted_as()).copied().unwrap_or_default()
    }

    /// The status of the ProviderConfig with this key.
    pub fn provider(&self, config: &SharedKey) -> Option<&ProviderStatus> {
        let is_of = |status: &&ProviderStatus| {
            Some(&status.provider) == config.provider.as_ref() && status.config == config.name
        };
        self.providers.iter().find(is_of)
    }
}

/// The assignment of a project to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub cluster_id: ClusterId,
    pub cluster: String,
    /// The engine that the cluster serves.
    pub engine: Engine,
    /// How control planes reach the cluster; `None` where the engine needs no access.
    pub access: Option<ClusterAccess>,
    pub namespace: String,
    pub namespace_phase: NamespacePhase,
    /// The identity that the cluster or root reported when it was registered.
    /// Absence is proven only on the same one.
    pub substrate_uid: Option<String>,
    /// The status of each ProviderConfig; empty where an engine needs none.
    pub providers: Vec<ProviderStatus>,
    /// What keeps the namespace from being Ready, for people.
    pub problems: Vec<String>,
}

impl Placement {
    pub fn is_ready(&self) -> bool {
        self.namespace_phase == NamespacePhase::Ready
    }

    /// Refuses a blueprint that the cluster can never serve: nobody would ever apply it,
    /// and nobody could prove its absence.
    pub fn serves(&self, blueprint: &BlueprintVersion) -> Result<(), Refusal> {
        let BlueprintVersion { slug, engine, .. } = blueprint;
        if self.engine == *engine && engine.is_offered() {
            return Ok(());
        }
        let Self { cluster, engine: served, .. } = self;
        let message = if engine.is_offered() {
            format!(
                "blueprint `{slug}` is of engine {engine}, and the project's cluster `{cluster}` serves {served}; name a blueprint of engine {served}, or a project on a cluster of engine {engine}"
            )
        } else {
            format!(
                "blueprint `{slug}` is of engine {engine}, which no cluster serves; name a blueprint of engine {served}"
            )
        };
        let details = json!({ "engine": engine, "cluster": cluster, "cluster_engine": served });
        Err(Refusal::new(ErrorKind::EngineNotServed, message).with(details))
    }

    /// Whether something that reaches a cloud through this ProviderConfig of the provider,
    /// with this credential, may be applied here. If not, it waits; that is no error.
    pub fn admits(
        &self,
        provider: Option<(&str, &str, CloudCredentialId)>,
    ) -> Result<(), (BlockerCode, String)> {
        let Self { namespace, cluster, namespace_phase, .. } = self;
        if !self.is_ready() {
            let mut message = format!(
                "namespace {namespace} on cluster {cluster} is {namespace_phase}, not Ready"
            );
            if !self.problems.is_empty() {
                message = format!("{message}: {}", self.problems.join("; "));
            }
            return Err((BlockerCode::NamespaceNotReady, message));
        }
        let Some((provider, config, credential)) = provider else {
            return Ok(());
        };
        let not_ready = |why: &str| {
            let through = match config == provider {
                true => String::new(),
                false => format!(" through ProviderConfig {config}"),
            };
            let message = format!(
                "provider {provider} cannot be used{through} in namespace {namespace} on cluster {cluster} yet: {why}"
            );
            Err((BlockerCode::ProviderNotReady, message))
        };
        let status = self
            .providers
            .iter()
            .find(|status| status.provider == provider && status.config == config);
        match status {
            None => not_ready("it was not observed since this was declared"),
            Some(status) if status.credential_id != credential => {
                not_ready("it is set up with another credential, which is being replaced")
            }
            Some(status) if status.phase != ProviderPhase::Ready => {
                not_ready(status.problem.as_deref().unwrap_or("it is not Ready"))
            }
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::fixtures::mk_placement;

    const CREDENTIAL: CloudCredentialId = CloudCredentialId::new(Uuid::from_u128(1));

    fn status(phase: ProviderPhase) -> ProviderStatus {
        ProviderStatus {
            provider: "hetzner".to_owned(),
            config: "hetzner".to_owned(),
            credential_id: CREDENTIAL,
            phase,
            problem: Some("the secret is missing".to_owned()),
        }
    }

    #[test]
    fn nothing_is_applied_before_its_namespace_and_its_provider_are_ready() {
        let admits = |assignment: &Placement, provider| assignment.admits(provider);
        let plain = mk_placement();
        assert_eq!(admits(&plain, None), Ok(()));
        let problems = vec!["it is being deleted".to_owned()];
        let degraded = NamespacePhase::Degraded;
        let pending = Placement { namespace_phase: degraded, problems, ..mk_placement() };
        let (code, message) = admits(&pending, None).unwrap_err();
        assert_eq!(code, BlockerCode::NamespaceNotReady);
        assert!(message.ends_with("is Degraded, not Ready: it is being deleted"), "{message}");
        let hetzner = Some(("hetzner", "hetzner", CREDENTIAL));
        assert_eq!(admits(&plain, hetzner).unwrap_err().0, BlockerCode::ProviderNotReady);
        for phase in ProviderPhase::ALL {
            let assignment = Placement { providers: vec![status(*phase)], ..mk_placement() };
            assert_eq!(
                admits(&assignment, hetzner).is_ok(),
                *phase == ProviderPhase::Ready,
                "{phase}"
            );
            let other = CloudCredentialId::new(Uuid::from_u128(2));
            let shared = Some(("hetzner", "hetzner", other));
            assert!(admits(&assignment, shared).is_err(), "another credential");
            let own = Some(("hetzner", "hetzner-own", other));
            assert!(admits(&assignment, own).is_err(), "it is not observed yet");
            let mut both = assignment.clone();
            let config = "hetzner-own".to_owned();
            both.providers.push(ProviderStatus {
                config,
                credential_id: other,
                ..status(ProviderPhase::Ready)
            });
            assert_eq!(admits(&both, own), Ok(()), "whatever the shared one does");
            assert_eq!(admits(&both, hetzner), admits(&assignment, hetzner));
        }
        let waiting =
            Placement { providers: vec![status(ProviderPhase::Waiting)], ..mk_placement() };
        assert!(admits(&waiting, hetzner).unwrap_err().1.contains("the secret is missing"));
    }

    #[test]
    fn a_status_of_an_earlier_version_is_that_of_the_shared_config() {
        let stored = json!({
            "provider": "hetzner", "credential_id": CREDENTIAL, "phase": "Waiting",
            "problem": "the secret is missing",
        });
        let read: ProviderStatus = serde_json::from_value(stored).unwrap();
        assert_eq!(read, status(ProviderPhase::Waiting));
        let own = ProviderStatus { config: "hetzner-own".to_owned(), problem: None, ..read };
        assert_eq!(serde_json::from_value::<ProviderStatus>(json!(own)).unwrap(), own);
    }
}
