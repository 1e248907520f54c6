//! Completion of names in a shell. The names come from the server of the context, within a
//! moment; without an answer there are none, and nothing is said: a shell that is being typed
//! into is no place for errors.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::time::Duration;

use clap::Parser;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use serde_json::Value;
use slipway_core::broker::phase::Phase;

use crate::arguments::{ClientOptions, Output};
use crate::client::{Client, Listing};

/// A person who typed TAB waits no longer.
const LIMIT: Duration = Duration::from_millis(300);

/// More than a person reads.
const MOST: u32 = 500;

/// By the noun of a command: the list that has the names, and their field.
const LISTS: [(&str, &str, &str); 15] = [
    ("resource", "resources", "handle"),
    ("project", "projects", "name"),
    ("cloud", "clouds", "name"),
    ("credential", "credentials", "name"),
    ("blueprint", "blueprints", "slug"),
    ("label", "labels", "key"),
    ("cluster", "clusters", "name"),
    ("node", "nodes", "hostname"),
    ("key", "keys", "name"),
    ("generator", "generators", "name"),
    ("stack", "stacks", "name"),
    ("template", "templates", "name"),
    ("agent", "agents", "name"),
    ("workspace", "workspaces", "name"),
    ("server", "servers", "name"),
];

/// Those of one project, if the line or the context names one.
const IN_PROJECT: [&str; 7] =
    ["resource", "generator", "stack", "template", "agent", "workspace", "server"];

/// The names of what this kind has; for the kind of the command if it is empty.
pub(crate) fn names(kind: &'static str) -> ArgValueCandidates {
    ArgValueCandidates::new(move || {
        let words = typed();
        let noun = |word: &&String| LISTS.iter().any(|(noun, ..)| word == noun);
        let kind = match kind {
            "" => words.iter().find(noun).map_or("", String::as_str),
            kind => kind,
        };
        candidates(listed(&words, kind))
    })
}

/// `KIND/NAME`, or the handle of a resource alone.
pub(crate) fn things() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_str().unwrap_or_default();
        let (prefix, kind) = match current.split_once('/') {
            Some((kind, _)) => (format!("{kind}/"), kind),
            None => (String::new(), "resource"),
        };
        let names = listed(&typed(), kind).into_iter().map(|name| format!("{prefix}{name}"));
        candidates(names.filter(|name| name.starts_with(current)).collect())
    })
}

pub(crate) fn phases() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        Phase::ALL.iter().map(|phase| CompletionCandidate::new(phase.as_str())).collect()
    })
}

pub(crate) fn formats() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        Output::FORMATS.into_iter().chain(["jsonpath="]).map(CompletionCandidate::new).collect()
    })
}

/// The contexts of the user.
pub(crate) fn contexts() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let file = options(&typed()).and_then(|options| options.contexts_file().ok());
        let contexts = file.and_then(|file| file.read().ok()).unwrap_or_default();
        candidates(contexts.contexts.into_keys().collect())
    })
}

fn candidates(names: Vec<String>) -> Vec<CompletionCandidate> {
    // Nothing that a shell would take apart, whoever named it.
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let names = names.into_iter().filter(|name| name.chars().all(plain));
    names.map(CompletionCandidate::new).collect()
}

/// The words of the line that is being typed: the shell gives them after `--`.
fn typed() -> Vec<String> {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    words.filter_map(|word| word.into_string().ok()).collect()
}

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    options: ClientOptions,
}

/// The options of the line as far as they say which server is meant.
fn options(words: &[String]) -> Option<ClientOptions> {
    const FLAGS: [&str; 4] = ["--context", "--config-home", "--server", "--ca-file"];
    let pairs = words.windows(2).filter(|pair| FLAGS.contains(&pair[0].as_str())).flatten();
    let joined = words
        .iter()
        .filter(|word| word.split_once('=').is_some_and(|(flag, _)| FLAGS.contains(&flag)));
    let line = std::iter::once("slipway").chain(pairs.chain(joined).map(String::as_str));
    let options = Line::try_parse_from(line).ok()?.options;
    // The shell's input is not ours.
    options.key_file.as_ref().is_none_or(|path| path.as_os_str() != "-").then_some(options)
}

fn listed(words: &[String], kind: &str) -> Vec<String> {
    let list = LISTS.iter().find(|(noun, list, _)| [*noun, *list].contains(&kind));
    let Some((noun, list, field)) = list else { return Vec::new() };
    let project = words.windows(2).find(|pair| pair[0] == "--project").map(|pair| &pair[1]);
    let asked = async {
        let connection = options(words)?.connection().ok()?;
        let usual = connection.project.clone();
        let ca_file = connection.ca_file.as_deref();
        let client = Client::new(&connection.server, connection.key, ca_file).ok()?;
        let project = project.cloned().or(usual).filter(|_| IN_PROJECT.contains(noun));
        let wanted = Listing::first(Some(MOST)).with("project", project);
        Some(client.list::<Value>(&[list], wanted).await.ok()?.items)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let found = runtime.ok().and_then(|runtime| {
        runtime.block_on(async { tokio::time::timeout(LIMIT, asked).await.ok().flatten() })
    });
    let found = found.unwrap_or_default();
    let names = found.iter().filter_map(|item| Some(item[field].as_str()?.to_owned()));
    // Versions of a template share a name.
    names.collect::<BTreeSet<_>>().into_iter().collect()
}
