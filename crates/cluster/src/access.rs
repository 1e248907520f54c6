//! The credentials for a cluster: the service account of the pod that this runs
//! in, or a kubeconfig file. The path is kept in memory, the content is not.
//!
//! Whoever registers a cluster names the file, and must not run programs here. So
//! a kubeconfig that would start one, read other files of this machine, or skip
//! the verification of the server is refused.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Where the credentials for a cluster come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// The service account of the pod.
    InCluster,
    Kubeconfig(PathBuf),
}

/// Why a kubeconfig is refused. Names the field and never its content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the kubeconfig cannot be used: `{field}` {problem}")]
pub struct InvalidKubeconfig {
    pub field: String,
    pub problem: String,
}

impl InvalidKubeconfig {
    fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

/// Limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Parses a kubeconfig and refuses what must not be used.
pub fn check(text: &str) -> Result<Kubeconfig, InvalidKubeconfig> {
    let config = Kubeconfig::from_yaml(text)
        .map_err(|_| InvalidKubeconfig::new("kubeconfig", "is not the YAML of a kubeconfig"))?;
    let Some(current) = config.current_context.as_deref().filter(|name| !name.is_empty()) else {
        let problem = "is missing; name the context that is to be used";
        return Err(InvalidKubeconfig::new("current-context", problem));
    };
    if !config.contexts.iter().any(|context| context.name == current) {
        return Err(InvalidKubeconfig::new("current-context", "names no context of the file"));
    }
    for named in &config.clusters {
        let at = |field: &str| format!("clusters.{}.{field}", named.name);
        let Some(cluster) = &named.cluster else { continue };
        if cluster.insecure_skip_tls_verify == Some(true) {
            let problem = "is not accepted; give the authority in certificate-authority-data";
            return Err(InvalidKubeconfig::new(at("insecure-skip-tls-verify"), problem));
        }
        if cluster.certificate_authority.is_some() {
            let problem = "names a file; put its content into certificate-authority-data";
            return Err(InvalidKubeconfig::new(at("certificate-authority"), problem));
        }
        let server = cluster.server.as_deref().unwrap_or_default();
        if !server.starts_with("https://") {
            return Err(InvalidKubeconfig::new(at("server"), "must begin with https://"));
        }
        if cluster.proxy_url.is_some() {
            return Err(InvalidKubeconfig::new(at("proxy-url"), "is not accepted"));
        }
    }
    for named in &config.auth_infos {
        let at = |field: &str| format!("users.{}.{field}", named.name);
        let Some(user) = &named.auth_info else { continue };
        let refused = [
            ("exec", user.exec.is_some(), "would run a program; use a token or a certificate"),
            ("auth-provider", user.auth_provider.is_some(), "is not accepted; use a token"),
            ("tokenFile", user.token_file.is_some(), "names a file; give the token itself"),
            (
                "client-certificate",
                user.client_certificate.is_some(),
                "names a file; use client-certificate-data",
            ),
            ("client-key", user.client_key.is_some(), "names a file; use client-key-data"),
        ];
        if let Some((field, _, problem)) = refused.iter().find(|(_, present, _)| *present) {
            return Err(InvalidKubeconfig::new(at(field), *problem));
        }
    }
    Ok(config)
}

impl Access {
    /// Reads the file and builds the configuration of a client.
    pub(crate) async fn load(&self) -> Result<Config, String> {
        let mut config = match self {
            Self::InCluster => Config::incluster().map_err(|error| {
                format!("there is no service account to use here: {error}; run in a pod, or name a kubeconfig")
            })?,
            Self::Kubeconfig(path) => {
                let text = read(path).await?;
                let checked = check(&text).map_err(|invalid| invalid.to_string())?;
                Config::from_custom_kubeconfig(checked, &KubeConfigOptions::default())
                    .await
                    .map_err(|error| format!("the kubeconfig cannot be used: {error}"))?
            }
        };
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        // The loops retry, each at its own pace.
        config.default_retry = false;
        Ok(config)
    }

    /// Changes when the file is written. `None` for a service account, whose
    /// token the client itself reads again.
    pub(crate) async fn fingerprint(&self) -> Option<Fingerprint> {
        match self {
            Self::InCluster => None,
            Self::Kubeconfig(path) => {
                let metadata = tokio::fs::metadata(path).await.ok()?;
                Some(Fingerprint { modified: metadata.modified().ok()?, length: metadata.len() })
            }
        }
    }

    /// Changes with the content of the file; `None` where there is no file.
    pub(crate) async fn digest(&self) -> Option<u64> {
        match self {
            Self::InCluster => None,
            Self::Kubeconfig(path) => {
                let mut hasher = DefaultHasher::new();
                read(path).await.ok()?.hash(&mut hasher);
                Some(hasher.finish())
            }
        }
    }
}

/// See [`Access::fingerprint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    modified: std::time::SystemTime,
    length: u64,
}

async fn read(path: &Path) -> Result<String, String> {
    tokio::fs::read_to_string(path)
        .await
        .map_err(|error| format!("the kubeconfig {} cannot be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             clusters: [{{name: k, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
        )
    }

    const SERVER: &str = "server: 'https://127.0.0.1:6443', certificate-authority-data: aGk=";

    #[test]
    fn a_token_and_an_inline_authority_are_taken() {
        check(&config(SERVER, "token: secret")).unwrap();
    }

    #[test]
    fn what_runs_reads_or_trusts_is_refused_by_its_field() {
        let with = |more: &str| format!("{SERVER}, {more}");
        let table = [
            (
                config(&with("insecure-skip-tls-verify: true"), ""),
                "clusters.k.insecure-skip-tls-verify",
            ),
            (
                config(&with("certificate-authority: /etc/ca"), ""),
                "clusters.k.certificate-authority",
            ),
            (config(&with("proxy-url: 'http://x'"), ""), "clusters.k.proxy-url"),
            (config("server: 'http://127.0.0.1'", ""), "clusters.k.server"),
            (config(SERVER, "exec: {command: sh, apiVersion: v1}"), "users.u.exec"),
            (config(SERVER, "auth-provider: {name: gcp, config: {}}"), "users.u.auth-provider"),
            (config(SERVER, "tokenFile: /var/token"), "users.u.tokenFile"),
            (config(SERVER, "client-certificate: /a"), "users.u.client-certificate"),
            (config(SERVER, "client-key: /a"), "users.u.client-key"),
            (
                config(SERVER, "").replace("current-context: c", "current-context: d"),
                "current-context",
            ),
            (config(SERVER, "").replace("current-context: c\n", ""), "current-context"),
            ("[".to_owned(), "kubeconfig"),
        ];
        for (text, field) in table {
            let invalid = check(&text).unwrap_err();
            assert_eq!(invalid.field, field, "{invalid}");
            assert!(!invalid.to_string().contains("secret"), "{invalid}");
        }
    }
}
