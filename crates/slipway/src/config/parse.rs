//! Parses single settings. Each error names its key.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use slipway_core::text::Handle;
use slipway_core::time::parse_duration;

use super::{Environment, InvalidConfig};

pub(super) fn default_data_dir(environment: Environment<'_>) -> Result<PathBuf, InvalidConfig> {
    let folder =
        |name: &str| environment(name).filter(|value| value.starts_with('/')).map(PathBuf::from);
    folder("XDG_DATA_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".local/share")))
        .map(|base| base.join("slipway"))
        .ok_or_else(|| {
            InvalidConfig::new(
                "data_dir",
                "must be given, since neither XDG_DATA_HOME nor HOME is set",
            )
        })
}

pub(super) fn address(key: &str, text: &str) -> Result<SocketAddr, InvalidConfig> {
    text.parse().map_err(|_| {
        InvalidConfig::new(key, "must be an address with a port, such as 127.0.0.1:7700")
    })
}

pub(super) fn absolute(key: &str, path: &Path) -> Result<PathBuf, InvalidConfig> {
    std::path::absolute(path).map_err(|error| InvalidConfig::new(key, error.to_string()))
}

pub(super) fn name(
    key: &str,
    given: Option<String>,
    default: &str,
) -> Result<String, InvalidConfig> {
    let name = given.unwrap_or_else(|| default.to_owned());
    Handle::parse(&name).map_err(|error| InvalidConfig::new(key, error.problem))?;
    Ok(name)
}

/// The name of an object that is not a namespace: a DNS subdomain.
pub(super) fn kubernetes_name(
    key: &str,
    given: Option<String>,
    default: &str,
) -> Result<String, InvalidConfig> {
    let name = given.unwrap_or_else(|| default.to_owned());
    if name.len() <= 253 && name.split('.').all(|label| Handle::parse(label).is_ok()) {
        return Ok(name);
    }
    let problem = "must be the name of an object: lowercase letters, digits, hyphens and dots";
    Err(InvalidConfig::new(key, problem))
}

pub(super) fn at_least_one(
    key: &str,
    value: Option<u32>,
    default: u32,
) -> Result<u32, InvalidConfig> {
    match value {
        Some(0) => Err(InvalidConfig::new(key, "must be at least 1")),
        other => Ok(other.unwrap_or(default)),
    }
}

pub(super) fn checked_url(url: &str) -> Result<String, InvalidConfig> {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() && !host.starts_with('/') => {
            Ok(url.trim_end_matches('/').to_owned())
        }
        _ => Err(InvalidConfig::new(
            "public_url",
            "must start with http:// or https:// and name a host",
        )),
    }
}

/// The name of a container image; an empty one means none.
pub(super) fn checked_image(image: Option<String>) -> Result<Option<String>, InvalidConfig> {
    let Some(image) = image.filter(|image| !image.is_empty()) else { return Ok(None) };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "./:@_-".contains(c);
    if image.len() > 512 || !image.chars().all(allowed) {
        let problem = "must name an image, such as registry.example/plexd:1.0";
        return Err(InvalidConfig::new("node_image", problem));
    }
    Ok(Some(image))
}

/// Parses `30s`, `200ms`, `1h 30m`, `8d`. Refuses zero and less: every one of these
/// settings is a pause or a limit.
pub(super) fn duration(
    key: &str,
    text: Option<String>,
    default: Duration,
) -> Result<Duration, InvalidConfig> {
    let Some(text) = text else { return Ok(default) };
    let parsed = parse_duration(&text).ok();
    // A year is longer than any of these settings needs, and cannot overflow.
    let sensible = Duration::from_millis(1)..=Duration::from_secs(366 * 86_400);
    parsed.filter(|duration| sensible.contains(duration)).ok_or_else(|| {
        InvalidConfig::new(
            key,
            format!(
                "is `{text}`, which is not a time between 1ms and a year such as 30s, 5m, 1h or 8d"
            ),
        )
    })
}

/// Parses what [`duration`] parses; at most ten years.
pub(super) fn days(
    key: &str,
    text: Option<String>,
    default: u32,
) -> Result<Duration, InvalidConfig> {
    const DAY: Duration = Duration::from_secs(86_400);
    let Some(text) = text else { return Ok(DAY * default) };
    let parsed = parse_duration(&text).ok();
    parsed.filter(|time| (Duration::from_millis(1)..=DAY * 3_660).contains(time)).ok_or_else(|| {
        let problem = format!("is `{text}`, which is not a time between 1ms and 3660d such as 30d");
        InvalidConfig::new(key, problem)
    })
}
