//! `slipway context …`: the contexts of the user. No key is ever shown.

use clap::Subcommand;
use serde::Serialize;

use super::choose::{Connection, DEFAULT_SERVER};
use super::file::{Context, Contexts, fault};
use crate::arguments::ClientOptions;
use crate::client::Client;
use crate::complete;
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Row};
use crate::output::or_dash;
use crate::session::{show_details_on, show_rows_on};
use crate::terminal::Terminal;

#[derive(Debug, Clone, Subcommand)]
pub enum ContextCommand {
    /// Add a context from --server, a key and --ca-file; its server is not asked
    Add {
        /// Its name
        name: String,
        /// The project of resources if a command names none
        #[arg(long)]
        project: Option<String>,
        /// Make it the current one
        #[arg(long = "use")]
        is_used: bool,
        /// Replace the context of this name
        #[arg(long)]
        replace: bool,
    },
    /// Make a context the current one: commands use it unless they name another
    Use {
        /// Its name
        #[arg(add = complete::contexts())]
        name: String,
    },
    /// List the contexts
    List,
    /// Show a context; the one that commands use now if none is named
    Show {
        /// Its name
        #[arg(add = complete::contexts())]
        name: Option<String>,
    },
    /// Remove a context; its key stays valid, and is lost if it is kept nowhere else
    Remove {
        /// Its name
        #[arg(add = complete::contexts())]
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway context add ci --server https://slipway.example --key-file ci.key --project shop",
    "slipway context list",
    "slipway context use ci",
    "slipway context show",
    "slipway context show ci -o yaml",
    "slipway context remove ci --yes",
];

/// A context as it is shown.
#[derive(Debug, Clone, Serialize)]
pub(super) struct View {
    name: String,
    current: bool,
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    /// The part of the key that is no secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ca_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<String>,
    file: String,
}

impl View {
    pub(super) fn of(name: &str, context: &Context, current: bool, file: String) -> Self {
        Self {
            name: name.to_owned(),
            current,
            server: context.server.clone(),
            project: context.project.clone(),
            key: context.shown_key(),
            ca_file: context.ca_file.as_ref().map(|path| path.display().to_string()),
            data_dir: context.data_dir.as_ref().map(|path| path.display().to_string()),
            file,
        }
    }
}

impl Row for View {
    fn cells(&self) -> Cells {
        vec![
            ("CURRENT", if self.current { "*" } else { "" }.to_owned()),
            ("NAME", self.name.clone()),
            ("SERVER", self.server.clone()),
            ("PROJECT", or_dash(self.project.as_deref())),
            ("KEY", or_dash(self.key.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![
            ("CA FILE", or_dash(self.ca_file.as_deref())),
            ("DATA DIRECTORY", or_dash(self.data_dir.as_deref())),
        ]
    }
}

impl Detail for View {
    const NOUN: &'static str = "context";

    fn facts(&self) -> Facts {
        vec![
            ("name", Some(self.name.clone())),
            ("current", Some(if self.current { "yes" } else { "no" }.to_owned())),
            ("server", Some(self.server.clone())),
            ("project", self.project.clone()),
            ("key", Some(self.key.clone().unwrap_or_else(|| "none".to_owned()))),
            ("authorities", self.ca_file.clone()),
            ("made for", self.data_dir.as_ref().map(|path| format!("`slipway up` in {path}"))),
            ("kept in", Some(self.file.clone())),
        ]
    }
}

/// Lowercase or not, but typable and no path.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_name = (1..=63).contains(&name.len())
        && name.chars().all(fits)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if is_name {
        return Ok(());
    }
    Err(Error::Usage(
        "the name of a context has at most 63 letters, digits, dots, hyphens and underscores, \
         and begins with a letter or a digit"
            .to_owned(),
    ))
}

/// Puts a context in its place. One of the same name for another server is not replaced
/// unless somebody says so: its key may be kept nowhere else.
pub(super) fn insert(
    all: &mut Contexts,
    name: &str,
    context: Context,
    replace: bool,
) -> Result<(), Error> {
    if let Some(before) = all.contexts.get(name)
        && !replace
    {
        return Err(fault(
            "context_exists",
            format!(
                "there is a context `{name}` for {}; choose another name, or replace it with --replace",
                before.server
            ),
        ));
    }
    all.contexts.insert(name.to_owned(), context);
    Ok(())
}

pub(crate) fn run(
    command: ContextCommand,
    options: &ClientOptions,
    terminal: &mut Terminal,
) -> Result<(), Error> {
    let file = options.contexts_file()?;
    let path = file.path().display().to_string();
    match command {
        ContextCommand::Add { name, project, is_used, replace } => {
            check_name(&name)?;
            let Some(server) = options.server.clone() else {
                let problem = format!("name its server with --server, such as {DEFAULT_SERVER}");
                return Err(Error::Usage(problem));
            };
            let ca_file = options.absolute_ca_file()?;
            // Refuses what no command could use.
            Client::new(&server, None, ca_file.as_deref())?;
            let context =
                Context { server, key: options.secret_key()?, ca_file, project, data_dir: None };
            let view = file.change(|all| {
                insert(all, &name, context.clone(), replace)?;
                if is_used {
                    all.current = Some(name.clone());
                }
                let is_current = all.current.as_ref() == Some(&name);
                Ok(View::of(&name, &context, is_current, path))
            })?;
            if !view.current {
                terminal.say(&format!("to use it: slipway context use {name}"));
            }
            show_details_on(terminal, options.output, None, &view);
        }
        ContextCommand::Use { name } => {
            file.change(|all| {
                all.get(&name)?;
                all.current = Some(name.clone());
                Ok(())
            })?;
            terminal.say(&format!("`{name}` is the current context"));
        }
        ContextCommand::List => {
            let all = file.read()?;
            let views: Vec<_> = all
                .contexts
                .iter()
                .map(|(name, context)| {
                    View::of(name, context, all.current.as_ref() == Some(name), path.clone())
                })
                .collect();
            show_rows_on(terminal, options.output, None, &views, "contexts");
        }
        ContextCommand::Show { name } => {
            let all = file.read()?;
            let name = match name {
                Some(name) => name,
                None => match options.connection()? {
                    Connection { context: Some(name), .. } => name,
                    Connection { server, .. } => {
                        terminal.say(&format!("no context is used; the server is {server}"));
                        return Ok(());
                    }
                },
            };
            let is_current = all.current.as_ref() == Some(&name);
            let view = View::of(&name, all.get(&name)?, is_current, path);
            show_details_on(terminal, options.output, None, &view);
        }
        ContextCommand::Remove { name, yes } => {
            terminal.can_agree(yes)?;
            file.read()?.get(&name)?;
            terminal.agree(yes, &format!("Remove context `{name}`, with the key that it has?"))?;
            let was_current = file.change(|all| {
                all.get(&name)?;
                all.contexts.remove(&name);
                Ok(all.current.take_if(|current| *current == name).is_some())
            })?;
            let now = if was_current { "; no context is the current one now" } else { "" };
            terminal.say(&format!("context `{name}` is removed{now}"));
        }
    }
    Ok(())
}
