//! The node agent as a DaemonSet, for a cluster whose machines somebody else
//! made. People apply these documents by hand: nothing here is reconciled.
//!
//! A bootstrap token is used once, so one set enrols one machine: its pods run
//! only on the named machine, and wait until it exists.

use serde_json::{Value, json};
use slipway_core::closed_set;
use slipway_core::secret::Secret;

use crate::cloud_init::{
    CONFIG_PATH, NodeConfig, RenderFailed, STATE_PATH, TOKEN_PATH, config_file,
};

closed_set!(
    /// How the token gets to the agent.
    TokenOutput {
        /// A Secret, mounted as a file that only its owner reads.
        Secret => "secret",
        /// A variable in the pod's template. Whoever may read DaemonSets sees it.
        Environment => "env",
    }
);

/// What a bundle is rendered from.
#[derive(Debug, Clone, Copy)]
pub struct Bundle<'a> {
    pub config: &'a NodeConfig,
    pub token: &'a Secret,
    pub image: &'a str,
    pub namespace: &'a str,
    pub token_output: TokenOutput,
}

/// The variable from which an agent reads its token if it finds no file.
pub const TOKEN_VARIABLE: &str = "PLEXD_BOOTSTRAP_TOKEN";
const CONFIG_VOLUME: &str = "config";
const TOKEN_VOLUME: &str = "token";

impl Bundle<'_> {
    /// The documents as one YAML stream. It carries the token in the clear.
    pub fn render(&self) -> Result<Secret, RenderFailed> {
        let mut documents = vec![self.service_account(), self.config_map()?];
        if self.token_output == TokenOutput::Secret {
            documents.push(self.secret());
        }
        documents.push(self.daemon_set());
        let mut text = String::new();
        for document in documents {
            let document = serde_yaml_ng::to_string(&document).map_err(|_| RenderFailed)?;
            text.push_str("---\n");
            text.push_str(&document);
        }
        Ok(Secret::new(text))
    }

    /// There is one set per machine, so the handle tells them apart.
    fn name(&self) -> String {
        format!("plexd-{}", self.config.resource_handle)
    }

    fn metadata(&self) -> Value {
        json!({ "name": self.name(), "namespace": self.namespace, "labels": self.labels() })
    }

    fn labels(&self) -> Value {
        json!({ "app.kubernetes.io/name": "plexd", "app.kubernetes.io/instance": self.name() })
    }

    fn service_account(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": self.metadata(),
            // The agent talks to the control plane and to no API server.
            "automountServiceAccountToken": false,
        })
    }

    fn config_map(&self) -> Result<Value, RenderFailed> {
        Ok(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": self.metadata(),
            "data": { "config.yaml": config_file(self.config)? },
        }))
    }

    fn secret(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": self.metadata(),
            "type": "Opaque",
            "stringData": { "bootstrap-token": self.token.expose() },
        })
    }

    fn daemon_set(&self) -> Value {
        let mut mounts = vec![
            json!({ "name": CONFIG_VOLUME, "mountPath": CONFIG_PATH, "subPath": "config.yaml" }),
            json!({ "name": "state", "mountPath": STATE_PATH }),
        ];
        let mut volumes = vec![
            json!({ "name": CONFIG_VOLUME, "configMap": { "name": self.name() } }),
            json!({
                "name": "state",
                "hostPath": { "path": STATE_PATH, "type": "DirectoryOrCreate" },
            }),
        ];
        let mut environment = Vec::new();
        match self.token_output {
            TokenOutput::Secret => {
                mounts.push(json!({
                    "name": TOKEN_VOLUME,
                    "mountPath": TOKEN_PATH,
                    "subPath": "bootstrap-token",
                    "readOnly": true,
                }));
                volumes.push(json!({
                    "name": TOKEN_VOLUME,
                    // 0400, written in decimal as JSON has it.
                    "secret": { "secretName": self.name(), "defaultMode": 256 },
                }));
            }
            TokenOutput::Environment => {
                environment.push(json!({ "name": TOKEN_VARIABLE, "value": self.token.expose() }));
            }
        }
        json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": self.metadata(),
            "spec": {
                "selector": { "matchLabels": self.labels() },
                "template": {
                    "metadata": { "labels": self.labels() },
                    "spec": {
                        "serviceAccountName": self.name(),
                        "automountServiceAccountToken": false,
                        // The mesh belongs to the machine, not to the pod.
                        "hostNetwork": true,
                        "nodeSelector": { "kubernetes.io/hostname": self.config.hostname },
                        "tolerations": [{ "operator": "Exists" }],
                        "containers": [{
                            "name": "plexd",
                            "image": self.image,
                            "args": ["up"],
                            "env": environment,
                            "securityContext": {
                                "capabilities": { "add": ["NET_ADMIN"], "drop": ["ALL"] },
                                "allowPrivilegeEscalation": false,
                            },
                            "volumeMounts": mounts,
                        }],
                        "volumes": volumes,
                    },
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud_init::tests::mk_config;

    const TOKEN: &str = "psb_live_x_node_y";

    fn bundle(token_output: TokenOutput) -> String {
        let (config, token) = (mk_config(), Secret::new(TOKEN));
        let bundle = Bundle {
            config: &config,
            token: &token,
            image: "registry.example/plexd:1",
            namespace: "plexd",
            token_output,
        };
        assert!(!format!("{bundle:?}").contains(TOKEN));
        bundle.render().unwrap().expose().to_owned()
    }

    #[test]
    fn a_bundle_with_a_secret() {
        insta::assert_snapshot!(bundle(TokenOutput::Secret));
    }

    #[test]
    fn a_bundle_with_a_variable() {
        insta::assert_snapshot!(bundle(TokenOutput::Environment));
    }

    #[test]
    fn the_token_is_in_one_place() {
        for token_output in TokenOutput::ALL {
            assert_eq!(bundle(*token_output).matches(TOKEN).count(), 1, "{token_output}");
        }
    }
}
