//! Arguments that commands of several nouns take, and parsers of values. The
//! file of a noun has the arguments that only that noun takes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use slipway_core::nearest::nearest;
use slipway_core::secret::Secret;
pub(crate) use slipway_core::time::parse_duration;

use crate::client::Listing;
use crate::complete;
use crate::error::Error;
use crate::output::Template;

/// The options of every command of the client.
#[derive(Debug, Clone, Args)]
pub struct ClientOptions {
    /// The server to talk to [default: that of the context, or http://127.0.0.1:7700]
    #[arg(long, env = "SLIPWAY_SERVER", value_name = "URL", global = true)]
    pub server: Option<String>,
    /// The API key; better given by `slipway login` or the environment, where other users do
    /// not see it
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
    /// The context to use [default: the current one, see `slipway context`]
    #[arg(long, env = "SLIPWAY_CONTEXT", value_name = "NAME", global = true)]
    #[arg(add = complete::contexts())]
    pub context: Option<String>,
    /// The folder of the contexts [default: slipway in the user's config folder]
    #[arg(long, env = "SLIPWAY_CONFIG_HOME", value_name = "DIR", global = true)]
    pub config_home: Option<PathBuf>,
    /// How results are shown: table, wide (every column, whole ids and times), name
    /// (KIND/NAME), json, yaml or jsonpath=TEMPLATE, such as {.items[*].handle}
    #[arg(short, long, value_name = "FORMAT", default_value = "table", global = true)]
    #[arg(value_parser = Output::parse, add = complete::formats())]
    pub output: Output,
}

/// The format of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Output {
    #[default]
    Table,
    /// A table with every column, whole ids and whole times
    Wide,
    /// `KIND/NAME` of what has a name, the table of anything else.
    Name,
    Json,
    Yaml,
    /// Parsed once, for as long as the process runs.
    JsonPath(&'static Template),
}

impl Output {
    /// Those that are one word.
    pub(crate) const FORMATS: [&str; 5] = ["table", "wide", "name", "json", "yaml"];

    /// Whether people read it: they are told in words what a program sees by itself.
    pub(crate) fn is_for_people(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "table" => Self::Table,
            "wide" => Self::Wide,
            "name" => Self::Name,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            _ => match text.strip_prefix("jsonpath=") {
                Some(template) => Self::JsonPath(Box::leak(Box::new(Template::parse(template)?))),
                None => {
                    let meant = nearest(text, Self::FORMATS);
                    let meant = meant.map(|meant| format!("did you mean `{meant}`? "));
                    return Err(format!(
                        "{}possible are {} and jsonpath=TEMPLATE, such as \
                         jsonpath={{.items[*].handle}}",
                        meant.unwrap_or_default(),
                        Self::FORMATS.join(", ")
                    ));
                }
            },
        })
    }
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
    /// Go on and show every one that changes, until interrupted
    #[arg(long, conflicts_with = "limit")]
    pub watch: bool,
    #[command(flatten)]
    pub page: PageArguments,
}

impl From<DeletedListArguments> for Listing {
    fn from(list: DeletedListArguments) -> Self {
        Self::from(list.page).show_deleted(list.show_deleted).watched(list.watch)
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
    #[arg(value_name = "NAME", add = complete::names(""))]
    pub reference: String,
}

#[derive(Debug, Clone, Args)]
pub struct NamedDeleteArguments {
    /// Its name, its id or the beginning of it
    #[arg(value_name = "NAME", add = complete::names(""))]
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

    /// The file of the authorities, wherever a later command is run.
    pub(crate) fn absolute_ca_file(&self) -> Result<Option<PathBuf>, Error> {
        let path = self.ca_file.as_ref().map(std::path::absolute).transpose();
        path.map_err(|error| Error::Usage(format!("--ca-file cannot be found: {error}")))
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
    let (name, text) = parse_pair(text)?;
    let json = serde_json::from_str::<Value>(&text).unwrap_or_default();
    let known = json.is_boolean() || json.is_i64();
    Ok((name, if known { json } else { Value::String(text) }))
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
    use super::*;

    #[test]
    fn a_pair_ends_its_name_at_the_first_sign() {
        assert_eq!(parse_pair("a=x=y"), Ok(("a".to_owned(), "x=y".to_owned())));
        assert!(parse_pair("a").is_err() && parse_pair("=1").is_err());
    }

    #[test]
    fn a_key_has_no_line_end() {
        assert_eq!(parse_secret("slipway_a\n").unwrap().expose(), "slipway_a");
    }
}
