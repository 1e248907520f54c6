//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use slipway_cli::{Exit, Output};

use crate::agents::{ClusterArguments, DirectoryArguments};
use crate::config::{InstallationArguments, Layer};

/// Declare infrastructure and watch it come up; delete it and watch it leave
/// in order.
#[derive(Debug, Parser)]
#[command(
    name = "slipway",
    version,
    propagate_version = true,
    arg_required_else_help = true, after_help = slipway_cli::EXIT_CODES
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) client: slipway_cli::ClientOptions,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Parses the command line. An answer that clap gives itself, such as help or what is
/// wrong, is printed, and its exit code returned.
pub(crate) fn parse(words: &[OsString]) -> Result<(ArgMatches, Arguments), ExitCode> {
    let mut command = command_line();
    let parsed = command.try_get_matches_from_mut(words).and_then(|matches| {
        Arguments::from_arg_matches(&matches).map(|arguments| (matches, arguments))
    });
    parsed.map_err(|error| {
        command.build();
        let command = innermost(&mut command, words);
        if error.kind() == ErrorKind::MissingSubcommand && !wants_json(words) {
            // Without a variable of the environment, clap shows the help itself.
            slipway_cli::say(command.render_help().to_string().trim_end());
            return Exit::Usage.into();
        }
        let error = with_plain_usage(error, command);
        if error.use_stderr() && wants_json(words) {
            let message = error.render().to_string().trim_end().to_owned();
            slipway_cli::fail(&slipway_cli::Error::Usage(message), Output::Json);
        } else {
            // Nobody is left to hear that this failed.
            let _ = error.print();
        }
        if error.use_stderr() { Exit::Usage.into() } else { Exit::Success.into() }
    })
}

/// The command that the words name, as far as they name one.
fn innermost<'a>(command: &'a mut clap::Command, words: &[OsString]) -> &'a mut clap::Command {
    words.iter().skip(1).fold(command, |command, word| {
        match command.find_subcommand(word).is_some() {
            true => {
                command.find_subcommand_mut(word).unwrap_or_else(|| unreachable!("it is there"))
            }
            false => command,
        }
    })
}

/// clap's usage in an error repeats what is set already, also by the environment.
fn with_plain_usage(mut error: clap::Error, command: &mut clap::Command) -> clap::Error {
    if error.get(ContextKind::Usage).is_some() {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(command.render_usage()));
    }
    error
}

/// Whether `-o json` is among the words, which clap did not get to read.
fn wants_json(words: &[OsString]) -> bool {
    let words: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
    let joined = words.iter().any(|word| ["-ojson", "-o=json", "--output=json"].contains(word));
    joined || words.windows(2).any(|pair| matches!(pair, ["-o" | "--output", "json"]))
}

/// The whole command line, with the examples in its help.
pub(crate) fn command_line() -> clap::Command {
    slipway_cli::with_examples(Arguments::command())
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the control plane on this machine.
    #[command(after_help = "\
Examples:
  slipway up
  slipway up --data-dir ./data --listen 127.0.0.1:7800
  SLIPWAY_DATABASE_URL=postgres://user:password@host/slipway slipway up")]
    Up(Box<Layer>),
    /// The settings of the control plane: show, check.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check database, disk, clock, keys and server, and say what to do.
    ///
    /// Needs no server and changes nothing. Takes the settings of `slipway up`,
    /// so that it checks what that would use.
    #[command(after_help = "\
Exit codes: 0 if nothing is a problem (there may be warnings), 8 otherwise.

Examples:
  slipway doctor
  slipway doctor --data-dir ./data -o json")]
    Doctor(Box<Layer>),
    /// Write the whole installation to one file, while it runs. SQLite only.
    ///
    /// The file holds the database and the signing key: keep it as a secret. It
    /// does not hold the substrate root, which outlives a restore on purpose.
    #[command(after_help = "\
Examples:
  slipway backup /backups/slipway.backup
  slipway backup --force latest.backup")]
    Backup(BackupArguments),
    /// Put a backup in place of the database. Nothing is done to what it
    /// manages until `slipway resume`.
    ///
    /// Refused while a control plane runs on the data directory. What was there
    /// is kept aside.
    #[command(after_help = "\
Examples:
  slipway restore /backups/slipway.backup
  slipway restore --data-dir ./data --yes latest.backup")]
    Restore(RestoreArguments),
    /// Write completions for a shell to the output.
    #[command(after_help = "\
Examples:
  slipway completions bash > ~/.local/share/bash-completion/completions/slipway
  slipway completions zsh > ~/.zfunc/_slipway
  slipway completions fish > ~/.config/fish/completions/slipway.fish")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write a manual page for every command into a folder.
    #[command(after_help = "\
Examples:
  slipway man ~/.local/share/man/man1")]
    Man {
        /// The folder; made if it is not there.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Write a generated document to the output.
    #[command(hide = true)]
    Reference {
        #[arg(value_enum)]
        about: Subject,
    },
    /// Programs in clusters that deploy stacks: create, list, get, activate, deactivate, delete, rotate-key, label, annotate, events, prune-confirm; and run an agent: cluster, directory, node
    #[command(subcommand, after_help = slipway_cli::EXIT_CODES)]
    Agent(Agent),
    #[command(flatten)]
    Client(slipway_cli::Command),
}

/// The documents that the program generates about itself.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Subject {
    /// docs/cli.md
    Cli,
    /// docs/openapi.json
    Api,
    /// docs/blueprint-metadata.schema.json
    Blueprint,
    /// docs/schemas/slipway.dev-v1.json
    Documents,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting and its source; secrets masked.
    #[command(after_help = "\
Examples:
  slipway config show
  slipway config show --config slipway.toml -o yaml")]
    Show(Box<Layer>),
    /// Check the settings, and name variables that nothing reads.
    #[command(after_help = "\
Examples:
  slipway config check --config slipway.toml")]
    Check(Box<Layer>),
}

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// The file to write.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Replace the file if it is there.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) place: InstallationArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The file to read, made by `slipway backup`.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) place: InstallationArguments,
}

/// What is below `agent`: the programs, and the commands of the client about Fleet's agents.
#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    #[command(flatten)]
    Program(AgentProgram),
    #[command(flatten)]
    Client(slipway_cli::AgentCommand),
}

/// The agents that this binary is.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentProgram {
    /// Bring stacks to a Kubernetes cluster, until it is ended.
    #[command(after_help = "\
Examples:
  slipway agent cluster --server https://slipway.example.com --key-file agent.key
  slipway agent cluster --server http://127.0.0.1:7700 --key-file agent.key --kubeconfig east.yaml --once")]
    Cluster(ClusterArguments),
    /// Bring stacks to a folder of manifests, until it is ended.
    #[command(after_help = "\
Examples:
  slipway agent directory --server http://127.0.0.1:7700 --key-file agent.key --path ./manifests
  slipway agent directory --server http://127.0.0.1:7700 --key-file agent.key --path ./manifests --once")]
    Directory(DirectoryArguments),
    /// The node agent of one node directory; an engine starts it.
    Node {
        /// The directory that an engine laid out.
        #[arg(long = "dir", value_name = "DIR")]
        directory: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves<'a>(
        command: &'a clap::Command,
        path: &str,
        found: &mut Vec<(String, &'a clap::Command)>,
    ) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let path = format!("{path}{} ", inner.get_name());
            if inner.has_subcommands() {
                leaves(inner, &path, found);
            } else {
                found.push((path.trim_end().to_owned(), inner));
            }
        }
    }

    #[test]
    fn the_whole_command_line_is_consistent() {
        command_line().debug_assert();
    }

    /// Every command in the documents exists and accepts its arguments. A command
    /// that is only mentioned may lack required ones.
    #[test]
    fn every_command_of_the_documents_can_be_typed() {
        use clap::error::ErrorKind;
        let root = std::path::Path::new("../..");
        let mut pages = vec![root.join("README.md")];
        for entry in std::fs::read_dir(root.join("docs")).unwrap() {
            let path = entry.unwrap().path();
            // Generated from the commands themselves.
            if path.extension().is_some_and(|end| end == "md") && !path.ends_with("cli.md") {
                pages.push(path);
            }
        }
        let mut typed = 0;
        for page in pages {
            let text = std::fs::read_to_string(&page).unwrap().replace('\n', " ");
            let spans = text.split('`').skip(1).step_by(2).filter(|s| s.starts_with("slipway "));
            for span in spans.filter(|span| !span.contains(['[', '|', '…'])) {
                typed += 1;
                let line = span.replace(['<', '>'], "");
                let Err(error) = Arguments::try_parse_from(line.split_whitespace()) else {
                    continue;
                };
                let only_named = matches!(
                    error.kind(),
                    ErrorKind::MissingRequiredArgument
                        | ErrorKind::DisplayHelp
                        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                );
                assert!(only_named, "{}: `{span}`: {error}", page.display());
            }
        }
        assert!(typed > 50, "{typed} were found");
    }

    /// An example that cannot be typed is worse than none.
    #[test]
    fn every_command_has_examples_that_can_be_typed() {
        let command = command_line();
        let mut found = Vec::new();
        leaves(&command, "", &mut found);
        assert!(found.len() > 50, "{}", found.len());
        for (path, leaf) in found {
            // Engines run it, not people.
            if path == "agent node" {
                continue;
            }
            let help = leaf.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples = help.split("Examples:\n").nth(1);
            let examples = examples.unwrap_or_else(|| {
                panic!("`slipway {path}` has no example; add it to the file of its noun in crates/cli/src")
            });
            for line in examples.lines().map(str::trim) {
                // The shell handles redirections and pipes.
                let typed = line.split(['>', '|']).next().unwrap_or(line);
                let words = typed.split_whitespace().skip_while(|word| word.contains('='));
                let parsed = Arguments::try_parse_from(words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                assert!(typed.contains(&format!("slipway {path}")), "{line} is not of {path}");
            }
        }
    }
}
