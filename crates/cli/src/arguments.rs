//! Arguments that commands of several nouns take, and parsers of values. The
//! file of a noun has the arguments that only that noun takes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;
use slipway_core::secret::Secret;

use crate::client::Listing;
use crate::error::Error;

/// The options of every command of the client.
#[derive(Debug, Clone, Args)]
pub struct ClientOptions {
    /// The server to talk to
    #[arg(
        long,
        env = "SLIPWAY_SERVER",
        default_value = "http://127.0.0.1:7700",
        value_name = "URL",
        global = true
    )]
    pub server: String,
    /// The API key; better given by the environment, where other users do not see it
    #[arg(
        long,
        env = "SLIPWAY_KEY",
        hide_env_values = true,
        value_name = "KEY",
        value_parser = parse_secret,
        global = true
    )]
    pub key: Option<Secret>,
    /// Trust the authorities in this PEM file instead of the system's
    #[arg(long, env = "SLIPWAY_CA_FILE", value_name = "FILE", global = true)]
    pub ca_file: Option<PathBuf>,
    /// How results are shown
    #[arg(short, long, value_enum, default_value_t, global = true)]
    pub output: Output,
}

/// The format of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    #[default]
    Table,
    /// A table with every column, whole ids and whole times
    Wide,
    Json,
    Yaml,
}

#[derive(Debug, Clone, Args)]
pub struct PageArguments {
    /// Stop after so many; all if not given
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
}

impl PageArguments {
    /// The most items to show.
    pub(crate) fn most(&self) -> usize {
        self.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
    }
}

impl From<PageArguments> for Listing {
    fn from(page: PageArguments) -> Self {
        Self::first(page.limit)
    }
}

#[derive(Debug, Clone, Args)]
pub struct DeletedListArguments {
    /// Also deleted ones
    #[arg(long)]
    pub show_deleted: bool,
    #[command(flatten)]
    pub page: PageArguments,
}

impl From<DeletedListArguments> for Listing {
    fn from(list: DeletedListArguments) -> Self {
        Self::from(list.page).show_deleted(list.show_deleted)
    }
}

#[derive(Debug, Clone, Args)]
pub struct IdArguments {
    /// Its id or the beginning of it; a key also by its name
    pub id: String,
}

#[derive(Debug, Clone, Args)]
pub struct NamedArguments {
    /// Its name, its id or the beginning of it
    #[arg(value_name = "NAME")]
    pub reference: String,
}

#[derive(Debug, Clone, Args)]
pub struct NamedDeleteArguments {
    /// Its name, its id or the beginning of it
    #[arg(value_name = "NAME")]
    pub reference: String,
    #[command(flatten)]
    pub deletion: DeletionArguments,
}

#[derive(Debug, Clone, Args)]
pub struct DeletionArguments {
    /// Why; kept with the deletion
    #[arg(long)]
    pub reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct RevokeArguments {
    /// Its id or the beginning of it; a key also by its name
    pub id: String,
    /// Why; kept in the audit
    #[arg(long)]
    pub reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct WaitArguments {
    /// Wait for the outcome
    #[arg(long)]
    pub wait: bool,
    /// How long to wait, for instance 90s or 5m
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5m", requires = "wait")]
    pub timeout: Duration,
}

#[expect(clippy::unnecessary_wraps, reason = "the signature that clap wants")]
pub(crate) fn parse_secret(text: &str) -> Result<Secret, String> {
    Ok(Secret::new(text))
}

pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

pub(crate) fn parse_parameter(text: &str) -> Result<(String, Value), String> {
    let (name, text) = parse_pair(text)?;
    // Besides text, blueprints take only these types; `1.5`, `null` and `[1]`
    // stay text.
    let value = match serde_json::from_str::<Value>(&text) {
        Ok(value) if value.is_boolean() || value.is_i64() => value,
        _ => Value::String(text),
    };
    Ok((name, value))
}

/// A number with a unit, as `200ms`, `90s`, `5m`, `1h`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("expected a number with ms, s, m or h, for instance 90s".to_owned()),
    };
    let number: u64 =
        number.parse().map_err(|_| "expected a number, for instance 90s".to_owned())?;
    let total = number.checked_mul(milliseconds).ok_or("is too long".to_owned())?;
    Ok(Duration::from_millis(total))
}

/// A duration in the whole seconds that the API takes.
pub(crate) fn whole_seconds(flag: &str, time: Duration) -> Result<u64, Error> {
    if time.subsec_nanos() != 0 {
        return Err(Error::Usage(format!("{flag} must be whole seconds, for instance 90s")));
    }
    Ok(time.as_secs())
}

/// Pairs as a map; a repeated name is a mistake, not a choice.
pub(crate) fn distinct<T>(
    flag: &str,
    pairs: Vec<(String, T)>,
) -> Result<BTreeMap<String, T>, Error> {
    let mut map = BTreeMap::new();
    for (name, value) in pairs {
        let shown = format!("{flag} `{name}` is given twice");
        if map.insert(name, value).is_some() {
            return Err(Error::Usage(shown));
        }
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_integers_truths_or_text() {
        for (text, value) in [
            ("a=4", json!(4)),
            ("a=-4", json!(-4)),
            ("a=true", json!(true)),
            ("a=1.5", json!("1.5")),
            ("a=007", json!("007")),
            ("a=null", json!("null")),
            ("a=", json!("")),
            ("a=x=y", json!("x=y")),
            ("a=99999999999999999999", json!("99999999999999999999")),
        ] {
            assert_eq!(parse_parameter(text), Ok(("a".to_owned(), value)), "{text}");
        }
        assert!(parse_parameter("a").is_err());
        assert!(parse_parameter("=1").is_err());
    }

    #[test]
    fn times_have_a_unit() {
        for (text, milliseconds) in
            [("200ms", 200), ("90s", 90_000), ("5m", 300_000), ("1h", 3_600_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for bad in ["", "5", "m", "-5s", "5 m", "99999999999999999999s", "18446744073709551615h"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
