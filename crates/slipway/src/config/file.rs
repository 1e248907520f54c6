//! Reads the configuration file. An error names the line, never its text, which
//! may contain a password.

use std::path::Path;

use serde::Deserialize;
use slipway_core::nearest::nearest;
use slipway_core::secret::Secret;

use super::{InvalidConfig, Layer, keys};

/// A URL may carry a password, so it is kept out of every `Debug`.
pub(super) fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    // A variable is often read from a file, with its line end.
    Ok(Secret::new(text.trim()))
}

pub(super) fn secret_in_file<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Secret>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(Secret::new))
}

pub(super) fn read(path: &Path) -> Result<Layer, InvalidConfig> {
    let text = text(path)?;
    toml::from_str(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
        let problem = unknown_key(&text).unwrap_or_else(|| error.message().to_owned());
        InvalidConfig::new("config", format!("{}, line {line}: {problem}", path.display()))
    })
}

/// The keys that a file has, whether or not their values can be used.
pub(super) fn keys_in(path: &Path) -> Result<Vec<String>, InvalidConfig> {
    let table: toml::Table = text(path)?.parse().map_err(|_| {
        InvalidConfig::new("config", format!("{} is not a TOML file", path.display()))
    })?;
    Ok(table.keys().cloned().collect())
}

fn text(path: &Path) -> Result<String, InvalidConfig> {
    std::fs::read_to_string(path)
        .map_err(|error| InvalidConfig::new("config", format!("{}: {error}", path.display())))
}

/// The problem of an unknown key, if the file has one.
fn unknown_key(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let known = keys::in_file();
    let unknown = table.keys().find(|key| !known.contains(key))?;
    if keys::all().contains(unknown) {
        return Some(format!(
            "`{unknown}` is not taken from a file; give it as a flag or by the environment"
        ));
    }
    Some(match nearest(unknown, known.iter().map(String::as_str)) {
        Some(meant) => format!("`{unknown}` is no setting; did you mean `{meant}`?"),
        None => format!("`{unknown}` is no setting; `slipway config show` lists them"),
    })
}
