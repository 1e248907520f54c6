//! From a parsed command line to an exit code.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Serialize;

use super::catalog::{blueprints, clouds, clusters, credentials, labels, projects};
use super::{audit, control, events, explain, keys, leaks, records, resources, tokens};
use crate::arguments::{ClientOptions, Command, Output};
use crate::client::{Client, Listed, to_json, to_yaml};
use crate::demo;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::paint;
use crate::renderers::Renderers;
use crate::terminal::{Terminal, Traits};

/// Runs one command on the streams of this process.
pub async fn run(command: Command, options: ClientOptions, renderers: Renderers) -> ExitCode {
    run_on(command, options, renderers, &mut Terminal::of_process()).await.into()
}

/// Runs one command to its end. Errors are shown here; the caller only has to
/// end with the code.
pub async fn run_on(
    command: Command,
    options: ClientOptions,
    renderers: Renderers,
    terminal: &mut Terminal,
) -> Exit {
    let outcome = match command {
        Command::Demo(arguments) => demo::run(&arguments, options.output, terminal).await,
        command => connected(command, options, renderers, terminal).await,
    };
    // A failure of the command itself says more than that of its output.
    let outcome = match (outcome, terminal.take_failure()) {
        (Ok(()), Some(error)) => Err(Error::Output(error)),
        (outcome, _) => outcome,
    };
    match outcome {
        Ok(()) => Exit::Success,
        Err(error) => {
            terminal.say(&error.render());
            error.exit()
        }
    }
}

async fn connected(
    command: Command,
    options: ClientOptions,
    renderers: Renderers,
    terminal: &mut Terminal,
) -> Result<(), Error> {
    let client = Client::new(&options.server, options.key)?;
    let ClientOptions { server, output, .. } = options;
    let mut session = Session { client, server, output, renderers, terminal };
    match command {
        Command::Resource(command) => resources::run(&mut session, command).await,
        Command::Project(command) => projects::run(&mut session, command).await,
        Command::Cloud(command) => clouds::run(&mut session, command).await,
        Command::Credential(command) => credentials::run(&mut session, command).await,
        Command::Blueprint(command) => blueprints::run(&mut session, command).await,
        Command::Label(command) => labels::run(&mut session, command).await,
        Command::Cluster(command) => clusters::run(&mut session, command).await,
        Command::Node(command) => records::nodes(&mut session, command).await,
        Command::Token(command) => tokens::run(&mut session, command).await,
        Command::Key(command) => keys::run(&mut session, command).await,
        Command::Audit(command) => audit::run(&mut session, command).await,
        Command::Event(command) => events::run(&mut session, command).await,
        Command::Deletion(command) => records::deletions(&mut session, command).await,
        Command::Leaks(arguments) => leaks::run(&mut session, arguments).await,
        Command::Explain(arguments) => explain::run(&mut session, arguments).await,
        Command::Freeze(arguments) => control::freeze(&mut session, arguments).await,
        Command::Unfreeze(arguments) => control::unfreeze(&mut session, arguments).await,
        Command::Resume(arguments) => control::resume(&mut session, arguments).await,
        Command::Status => control::status(&mut session).await,
        Command::Plan(page) => control::plan(&mut session, page).await,
        // Needs no server; run above.
        Command::Demo(_) => Ok(()),
    }
}

/// What a command works with.
pub(super) struct Session<'a> {
    pub(super) client: Client,
    /// Where the client asks.
    pub(super) server: String,
    pub(super) output: Output,
    pub(super) renderers: Renderers,
    pub(super) terminal: &'a mut Terminal,
}

impl Session<'_> {
    /// Refuses before anything is sent: a script that forgot the flag learns it
    /// whether or not what it names exists.
    pub(super) fn can_agree(&self, agreed: bool) -> Result<(), Error> {
        if agreed || self.terminal.traits().asks {
            return Ok(());
        }
        Err(Error::Usage("this wants --yes where nobody can be asked; nothing was done".to_owned()))
    }

    /// Goes on once somebody agreed to something irrevocable: by the flag, or
    /// by an answer to this question.
    pub(super) fn agree(&mut self, agreed: bool, question: &str) -> Result<(), Error> {
        self.can_agree(agreed)?;
        if agreed || self.terminal.confirm(question) { Ok(()) } else { Err(Error::Declined) }
    }

    /// Shows one document.
    pub(super) fn show<T: Serialize>(
        &mut self,
        document: &T,
        render: impl FnOnce(&T, Option<u16>) -> String,
    ) {
        let Traits { width, colours, .. } = self.terminal.traits();
        let text = match self.output {
            Output::Table if colours => paint(&render(document, width)),
            Output::Table => render(document, width),
            Output::Json => to_json(document),
            Output::Yaml => to_yaml(document),
        };
        self.terminal.print(&text);
    }

    /// Shows a list, and says what is missing from it.
    pub(super) fn show_list<T: Serialize>(
        &mut self,
        listed: &Listed<T>,
        render: impl FnOnce(&[T], Option<u16>) -> String,
    ) {
        self.show(&listed.items, |items, width| render(items, width));
        if !listed.held.is_empty() {
            self.terminal.say(&format!(
                "warning: {} left out because their rows are invalid and held: {}",
                listed.held.len(),
                listed.held.join(", ")
            ));
        }
    }
}

/// Pairs as a map; a name that is given twice is a slip, not a choice.
pub(super) fn distinct<T>(
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
