//! Arguments that commands of several nouns take, and parsers of values. The
//! file of a noun has the arguments that only that noun takes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;
use slipway_core::secret::Secret;
pub(crate) use slipway_core::time::parse_duration;
use slipway_wire::catalog::ParameterType;

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
    /// A file with the API key, `-` for standard input; wins over --key
    #[arg(long, env = "SLIPWAY_KEY_FILE", value_name = "FILE", global = true)]
    pub key_file: Option<PathBuf>,
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
    /// Succeed if there is none (any more)
    #[arg(long)]
    pub ignore_not_found: bool,
    /// Touch nothing for this long, such as 24h; until then the deletion can be cancelled
    #[arg(long, value_name = "TIME", value_parser = checked_time)]
    pub grace: Option<String>,
    /// Pass the deletion brake and the approval; for admins, with a reason, and announced
    #[arg(long, requires = "reason")]
    pub break_glass: bool,
    /// Delete what this plan shows, and nothing else: the id that `slipway plan delete` answered
    #[arg(long, value_name = "ID")]
    pub plan: Option<String>,
}

impl DeletionArguments {
    /// What the request says.
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        let given = [("reason", &self.reason), ("grace", &self.grace), ("plan", &self.plan)];
        let given = given.into_iter().filter_map(|(name, text)| Some((name, text.clone()?)));
        given.chain(self.break_glass.then(|| ("break_glass", "true".to_owned()))).collect()
    }
}

/// The query that gives a reason.
pub(crate) fn because(reason: Option<String>) -> Vec<(&'static str, String)> {
    reason.map(|reason| ("reason", reason)).into_iter().collect()
}

/// A time as the server reads it.
fn checked_time(text: &str) -> Result<String, String> {
    parse_duration(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
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
    /// Succeed if there is none (any more)
    #[arg(long)]
    pub ignore_not_found: bool,
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

impl ClientOptions {
    /// The key of the file, of the flag or of the environment.
    pub(crate) fn secret_key(&self) -> Result<Option<Secret>, Error> {
        let Some(path) = &self.key_file else { return Ok(self.key.clone()) };
        let read = match path.as_os_str() == "-" {
            true => std::io::read_to_string(std::io::stdin()),
            false => std::fs::read_to_string(path),
        };
        let shown = path.display();
        let text = read.map_err(|error| {
            Error::Usage(format!("--key-file `{shown}` cannot be read: {error}"))
        })?;
        match text.trim() {
            "" => Err(Error::Usage(format!("--key-file `{shown}` is empty"))),
            key => Ok(Some(Secret::new(key))),
        }
    }
}

/// Files and variables often end with a line end, which is no part of a key.
#[expect(clippy::unnecessary_wraps, reason = "the signature that clap wants")]
pub(crate) fn parse_secret(text: &str) -> Result<Secret, String> {
    Ok(Secret::new(text.trim()))
}

pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// A name with an integer, a truth or a text.
pub(crate) fn parse_parameter(text: &str) -> Result<(String, Value), String> {
    parse_pair(text).map(|(name, text)| (name, typed(None, text)))
}

/// The value of a parameter of this type. A text is taken as it is typed, or as
/// JSON if it is one JSON text. What cannot be of the type stays text, and the
/// server says so. Without a type, integers and truths are recognised.
pub(crate) fn typed(kind: Option<ParameterType>, text: String) -> Value {
    let json = serde_json::from_str::<Value>(&text).unwrap_or_default();
    let fits = match kind {
        Some(ParameterType::String) => json.is_string(),
        Some(ParameterType::Integer) => json.is_i64(),
        Some(ParameterType::Boolean) => json.is_boolean(),
        None => json.is_boolean() || json.is_i64(),
    };
    if fits { json } else { Value::String(text) }
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
    fn a_value_has_the_type_of_its_parameter() {
        use ParameterType::{Boolean, Integer, String};
        for (kind, text, value) in [
            (Some(String), "22", json!("22")),
            (Some(String), "\"22\"", json!("22")),
            (Some(String), "\"\\\"22\\\"\"", json!("\"22\"")),
            (Some(String), "true", json!("true")),
            (Some(String), "{\"a\":1}", json!("{\"a\":1}")),
            (Some(String), "", json!("")),
            (Some(Integer), "-4", json!(-4)),
            (Some(Integer), "four", json!("four")),
            (Some(Integer), "99999999999999999999", json!("99999999999999999999")),
            (Some(Boolean), "true", json!(true)),
            (Some(Boolean), "1", json!("1")),
            (None, "4", json!(4)),
            (None, "true", json!(true)),
            (None, "1.5", json!("1.5")),
            (None, "007", json!("007")),
            (None, "null", json!("null")),
        ] {
            assert_eq!(typed(kind, text.to_owned()), value, "{kind:?} {text}");
        }
        assert_eq!(parse_pair("a=x=y"), Ok(("a".to_owned(), "x=y".to_owned())));
        assert!(parse_pair("a").is_err() && parse_pair("=1").is_err());
    }

    #[test]
    fn a_key_has_no_line_end() {
        assert_eq!(parse_secret("slipway_a\n").unwrap().expose(), "slipway_a");
    }
}
