//! The ProviderConfig through which Crossplane's provider reaches a cloud. Its name is that
//! of `slipway_core::placement::provider_config`.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use slipway_core::broker::snapshot::ProviderFacts;
use slipway_core::ids::{InstallationId, ProjectId};

use crate::composite::{LABEL_INSTALLATION, LABEL_PROJECT};

/// The key under which the Secret holds the credential.
pub const SECRET_KEY: &str = "credentials";

/// The project namespace that a shared object is in.
#[derive(Debug, Clone, Copy)]
pub struct Home<'a> {
    pub installation: InstallationId,
    pub project: ProjectId,
    pub namespace: &'a str,
}

impl Home<'_> {
    pub(crate) fn labels(&self) -> Value {
        json!({ LABEL_INSTALLATION: self.installation, LABEL_PROJECT: self.project })
    }
}

/// The name of the Secret that External Secrets makes of a credential: a hash
/// of its coordinates, never of its value.
pub fn secret_name(facts: &ProviderFacts) -> String {
    let mut hasher = Sha256::new();
    hasher.update(&facts.kv_mount);
    // Neither mount nor path can contain it, so two pairs never hash alike.
    hasher.update([0]);
    hasher.update(&facts.kv_path);
    // 16 hex digits are 64 bits: two of a million credentials collide with a
    // probability of 3 in 10^8, and only within one namespace would it matter.
    format!("cloud-credentials-{}", HEXLOWER.encode(&hasher.finalize()[..8]))
}

/// `apiVersion` of the ProviderConfigs of a provider.
pub fn api_version(provider: &str) -> String {
    format!("{provider}.crossplane.io/v1beta1")
}

pub fn render(home: &Home<'_>, name: &str, facts: &ProviderFacts) -> Value {
    json!({
        "apiVersion": api_version(&facts.provider),
        "kind": "ProviderConfig",
        "metadata": {
            "name": name,
            "namespace": home.namespace,
            "labels": home.labels(),
        },
        "spec": {
            "endpoint": facts.endpoint,
            "credentials": {
                "source": "Secret",
                "secretRef": {
                    "name": secret_name(facts),
                    "namespace": home.namespace,
                    "key": SECRET_KEY,
                },
            },
        },
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::Map;
    use slipway_core::fixtures::mk_provider_facts;
    use uuid::Uuid;

    use super::*;

    pub(crate) fn mk_home() -> Home<'static> {
        Home {
            installation: InstallationId::new(Uuid::from_u128(1)),
            project: ProjectId::new(Uuid::from_u128(12)),
            namespace: "slipway-project-x",
        }
    }

    #[test]
    fn the_provider_config_points_at_the_secret_by_name() {
        let mut facts = mk_provider_facts();
        facts.endpoint = Map::from_iter([("region".to_owned(), json!("fsn1"))]);
        insta::assert_json_snapshot!(render(&mk_home(), "hetzner", &facts));
    }

    #[test]
    fn the_name_of_the_secret_follows_where_it_lies_and_nothing_else() {
        let facts = mk_provider_facts();
        let name = secret_name(&facts);
        let digits = name.strip_prefix("cloud-credentials-").unwrap();
        assert!(digits.len() == 16 && digits.chars().all(|c| c.is_ascii_hexdigit()), "{name}");
        let other_cloud = ProviderFacts { provider: "aws".to_owned(), ..facts.clone() };
        assert_eq!(secret_name(&other_cloud), name);
        let moved = ProviderFacts { kv_path: "clouds/other".to_owned(), ..facts.clone() };
        assert_ne!(secret_name(&moved), name);
        let shifted = |mount: &str, path: &str| ProviderFacts {
            kv_mount: mount.to_owned(),
            kv_path: path.to_owned(),
            ..facts.clone()
        };
        assert_ne!(secret_name(&shifted("a", "b/c")), secret_name(&shifted("a/b", "c")));
        assert_ne!(secret_name(&shifted("a", "bc")), secret_name(&shifted("ab", "c")));
    }
}
