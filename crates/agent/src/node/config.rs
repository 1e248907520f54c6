//! `/etc/plexd/config.yaml`, as far as this agent needs it. Keys that only
//! plexd knows are ignored.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;

use super::directory::{Directory, read_if_there};
use super::error::Error;
use super::user_data::CONFIG_PATH;

#[derive(Deserialize)]
struct File {
    api_url: Option<String>,
    ca_file: Option<PathBuf>,
    project_id: Option<String>,
    resource_handle: Option<String>,
    hostname: Option<String>,
    #[serde(default = "default_heartbeat_interval_ms")]
    heartbeat_interval_ms: u64,
    #[serde(default = "default_orphan_after_ms")]
    orphan_after_ms: u64,
    #[serde(default)]
    busy_seconds: u64,
}

fn default_heartbeat_interval_ms() -> u64 {
    1000
}

fn default_orphan_after_ms() -> u64 {
    600_000
}

#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) api_url: Url,
    /// Trusted instead of the machine's, in PEM.
    pub(crate) authorities: Option<Vec<u8>>,
    pub(crate) project_id: Option<String>,
    pub(crate) resource_handle: Option<String>,
    pub(crate) hostname: Option<String>,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) orphan_after: Duration,
    pub(crate) busy: Duration,
}

impl Config {
    pub(crate) fn read(directory: &Directory) -> Result<Self, Error> {
        let path = directory.rootfs(Path::new(CONFIG_PATH));
        let unusable = |reason| Error::Configuration { path: path.clone(), reason };
        let content = read_if_there(&path)?
            .ok_or_else(|| unusable("the user-data document does not write it".to_owned()))?;
        let (config, ca_file) = parse(&content).map_err(unusable)?;
        let Some(ca_file) = ca_file else { return Ok(config) };
        // As the document wrote it, below the root of this node.
        let authorities = read_if_there(&directory.rootfs(&ca_file))?;
        let missing = || unusable(format!("ca_file {} is not there", ca_file.display()));
        Ok(Self { authorities: Some(authorities.ok_or_else(missing)?), ..config })
    }
}

/// The configuration without its authorities, and the file that has them.
fn parse(content: &[u8]) -> Result<(Config, Option<PathBuf>), String> {
    let file: File = serde_yaml_ng::from_slice(content).map_err(|error| error.to_string())?;
    let Some(api_url) = file.api_url else {
        return Err("api_url is missing, the address of the server".to_owned());
    };
    let api_url = Url::parse(&api_url).map_err(|error| format!("api_url is no URL: {error}"))?;
    if !matches!(api_url.scheme(), "http" | "https") {
        return Err(format!("api_url has the scheme {}, not http or https", api_url.scheme()));
    }
    // Logs and the status show the address, and no server of this protocol
    // asks for a password.
    if !api_url.username().is_empty() || api_url.password().is_some() {
        return Err("api_url carries a user or a password, it must not".to_owned());
    }
    if file.heartbeat_interval_ms == 0 {
        return Err("heartbeat_interval_ms is 0, it must be at least 1".to_owned());
    }
    let config = Config {
        api_url,
        authorities: None,
        project_id: file.project_id,
        resource_handle: file.resource_handle,
        hostname: file.hostname,
        heartbeat_interval: Duration::from_millis(file.heartbeat_interval_ms),
        orphan_after: Duration::from_millis(file.orphan_after_ms),
        busy: Duration::from_secs(file.busy_seconds),
    };
    Ok((config, file.ca_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_is_needed_and_unknown_keys_are_ignored() {
        let (config, ca_file) = parse(b"api_url: http://127.0.0.1:1\nmesh: {mtu: 1280}\n").unwrap();
        assert_eq!(ca_file, None);
        assert_eq!(config.heartbeat_interval, Duration::from_secs(1));
        assert_eq!(config.orphan_after, Duration::from_secs(600));
        assert_eq!(config.busy, Duration::ZERO);
    }

    #[test]
    fn a_mistake_is_named_by_its_key() {
        for (content, named) in [
            ("hostname: a", "api_url is missing"),
            ("api_url: ftp://a", "scheme ftp"),
            ("api_url: http://a:b@c", "user or a password"),
            ("api_url: here", "api_url is no URL"),
            ("api_url: http://a\nheartbeat_interval_ms: 0", "heartbeat_interval_ms"),
            ("api_url: http://a\nbusy_seconds: soon", "busy_seconds"),
        ] {
            let reason = parse(content.as_bytes()).unwrap_err();
            assert!(reason.contains(named), "{content}: {reason}");
        }
    }
}
