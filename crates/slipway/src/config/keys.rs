//! The names of settings, read from the command line's own definition, so that
//! flags, variables, the file and this list cannot drift apart.

use clap::Args;
use slipway_core::nearest::nearest;

use super::Layer;

/// Settings that a file cannot contain: the path of the file, a secret that must
/// not be stored in it, and one that is for a single start.
const NOT_IN_A_FILE: [&str; 3] = ["config", "admin_key", "stop_with_stdin"];

/// Variables that the tests of this repository read; no misspellings.
const OF_TESTS: [&str; 2] = ["SLIPWAY_TEST", "SLIPWAY_REQUIRE_POSTGRES"];

/// Every setting, in the order of `--help`.
pub(crate) fn all() -> Vec<String> {
    let command = Layer::augment_args(clap::Command::new("settings"));
    command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set())
        .map(|argument| argument.get_id().to_string())
        .collect()
}

pub(super) fn in_file() -> Vec<String> {
    let mut keys = all();
    keys.retain(|key| !NOT_IN_A_FILE.contains(&key.as_str()));
    keys
}

/// Warnings about variables that begin like ours and that nothing reads, each
/// with the one that was probably meant. `known` is the whole command line.
pub(crate) fn unknown_variables(
    known: &clap::Command,
    present: impl IntoIterator<Item = String>,
) -> Vec<String> {
    let mut read = Vec::new();
    variables(known, &mut read);
    let mut warnings: Vec<_> = present
        .into_iter()
        .filter(|name| name.starts_with("SLIPWAY_") && !read.contains(name))
        .filter(|name| !OF_TESTS.iter().any(|prefix| name.starts_with(prefix)))
        .map(|name| match nearest(&name, read.iter().map(String::as_str)) {
            Some(meant) => format!("nothing reads {name}; did you mean {meant}?"),
            None => format!("nothing reads {name}; `slipway config show` lists what is read"),
        })
        .collect();
    warnings.sort();
    warnings
}

fn variables(command: &clap::Command, read: &mut Vec<String>) {
    for argument in command.get_arguments() {
        if let Some(name) = argument.get_env().and_then(|name| name.to_str())
            && !read.iter().any(|known| known == name)
        {
            read.push(name.to_owned());
        }
    }
    for inner in command.get_subcommands() {
        variables(inner, read);
    }
}
