//! The ExternalSecret that puts a credential beside the resources that need it.
//! It says where the credential is stored; the value goes from the vault into
//! the cluster and never through this process.

use serde_json::{Value, json};
use slipway_core::broker::snapshot::ProviderFacts;

use crate::provider_config::{Home, SECRET_KEY, secret_name};

pub const API_VERSION: &str = "external-secrets.io/v1";
pub const KIND: &str = "ExternalSecret";

/// `store` is the ClusterSecretStore of the vault. The key includes the mount:
/// if the store's own path is that mount, External Secrets uses it only once;
/// if the store has no path, the mount is needed.
pub fn render(home: &Home<'_>, facts: &ProviderFacts, store: &str) -> Value {
    let name = secret_name(facts);
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": home.namespace,
            "labels": home.labels(),
        },
        "spec": {
            "refreshInterval": "1h",
            "secretStoreRef": { "kind": "ClusterSecretStore", "name": store },
            "target": { "name": name, "creationPolicy": "Owner" },
            "data": [{
                "secretKey": SECRET_KEY,
                "remoteRef": {
                    "key": format!("{}/{}", facts.kv_mount, facts.kv_path),
                    "property": SECRET_KEY,
                },
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use slipway_core::fixtures::mk_provider_facts;

    use super::*;
    use crate::provider_config::tests::mk_home;

    #[test]
    fn the_external_secret_names_coordinates_and_no_value() {
        insta::assert_json_snapshot!(render(&mk_home(), &mk_provider_facts(), "vault"));
    }
}
