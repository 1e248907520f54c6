//! The commands of the client: one variant per noun, its examples, and its
//! dispatch. The file of a noun has its arguments, columns and texts.

use clap::Subcommand;

use crate::access::{audit, key};
use crate::arguments::PageArguments;
use crate::broker::{logs, resource};
use crate::catalog::{blueprint, cloud, credential, label, project};
use crate::context::{commands as context, login};
use crate::deletion::{brake, leak, plan, protection, record};
use crate::demo;
use crate::error::Error;
use crate::events::event;
use crate::exit::EXIT_CODES;
use crate::files::{apply, export, get, sample, source};
use crate::fleet::demo as fleet;
use crate::fleet::{agent, generator, stack, target, template};
use crate::nodes::{node, token};
use crate::operations::{control, explain};
use crate::placement::cluster;
use crate::rollouts::rollout;
use crate::session::Session;
use crate::tenants::{profile, tenant};
use crate::topology::{server, workspace};
use crate::wait_command;

/// The commands of the client, noun first.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Declared infrastructure: create, list, get, delete, retry, explain, force-drain
    #[command(subcommand, after_help = EXIT_CODES)]
    Resource(resource::ResourceCommand),
    /// What resources belong to: create, list, get, relabel, delete
    #[command(subcommand, after_help = EXIT_CODES)]
    Project(project::ProjectCommand),
    /// Accounts of providers: create, list, get, update, delete
    #[command(subcommand, after_help = EXIT_CODES)]
    Cloud(cloud::CloudCommand),
    /// Paths of credentials, and which projects may use them: create, list, get, update, delete, assign, unassign
    #[command(subcommand, after_help = EXIT_CODES)]
    Credential(credential::CredentialCommand),
    /// What resources are made from: create, publish, import, list, get, versions, retire
    #[command(subcommand, after_help = EXIT_CODES)]
    Blueprint(blueprint::BlueprintCommand),
    /// What labels mean: define, list, get, delete
    #[command(subcommand, after_help = EXIT_CODES)]
    Label(label::LabelCommand),
    /// Where projects live: create, list, get, assign, unassign, assignments
    #[command(subcommand, after_help = EXIT_CODES)]
    Cluster(cluster::ClusterCommand),
    /// Enrolled node agents
    #[command(subcommand, after_help = EXIT_CODES)]
    Node(node::NodeCommand),
    /// Bootstrap tokens by hand: issue, list, show, revoke
    #[command(subcommand, after_help = EXIT_CODES)]
    Token(token::TokenCommand),
    /// Programs that submit stacks: create, list, get, update, delete, rotate-key, register, unregister
    #[command(subcommand, after_help = EXIT_CODES)]
    Generator(generator::GeneratorCommand),
    /// What generators want on clusters: create, list, get, update, delete, submit, objects, withdraw, label, annotate, rollback, strategy, health
    #[command(subcommand, after_help = EXIT_CODES)]
    Stack(stack::StackCommand),
    /// Texts that objects are made from: create, list, get, update, delete, render, label, annotate
    #[command(subcommand, after_help = EXIT_CODES)]
    Template(template::TemplateCommand),
    /// The binary has the noun, with the programs that it runs below it.
    #[command(skip)]
    Agent(agent::AgentCommand),
    /// Stacks that somebody named for an agent: add, remove, list
    #[command(subcommand, after_help = EXIT_CODES)]
    Target(target::TargetCommand),
    /// Fleet as a whole: demo
    #[command(subcommand, after_help = EXIT_CODES)]
    Fleet(fleet::FleetCommand),
    /// Databases of customers: provision, list, get, jobs, history, explain, retry, migrate, drift, decommission, restore
    #[command(subcommand, after_help = EXIT_CODES)]
    Tenant(tenant::TenantCommand),
    /// Where tenants live, and how they are made: create, list, get, update, delete
    #[command(subcommand, after_help = EXIT_CODES)]
    TenantProfile(profile::ProfileCommand),
    /// Servers that are declared and taken down together: list, get, teardown, delete, pause, resume, cancel, demo
    #[command(subcommand, after_help = EXIT_CODES)]
    Workspace(workspace::WorkspaceCommand),
    /// Machines of workspaces: list, get, scale-up, scale-down, replace, mark, delete
    #[command(subcommand, after_help = EXIT_CODES)]
    Server(server::ServerCommand),
    /// Make everything agree with files, in order; what agrees already is left alone
    #[command(after_help = EXIT_CODES)]
    Apply(apply::ApplyArguments),
    /// Show what `apply` would change; exits with 1 if there is something
    #[command(after_help = EXIT_CODES)]
    Diff(apply::FileArguments),
    /// Show an object as a document that `apply` takes
    #[command(after_help = EXIT_CODES)]
    Get(get::GetArguments),
    /// Write a project as a folder that `apply` takes, without secrets
    #[command(after_help = EXIT_CODES)]
    Export(export::ExportArguments),
    /// Print a sample of documents to begin with: `slipway sample > sample.yaml`
    Sample,
    /// Who declares what from files: list, get, faults
    #[command(subcommand, after_help = EXIT_CODES)]
    Source(source::SourceCommand),
    /// Who may use the API: create, list, show, rotate, revoke, whoami
    #[command(subcommand, after_help = EXIT_CODES)]
    Key(key::KeyCommand),
    /// Who did what, to what, and why: list, export
    #[command(subcommand, after_help = EXIT_CODES)]
    Audit(audit::AuditCommand),
    /// The lifecycle, event by event
    #[command(subcommand, after_help = EXIT_CODES)]
    Event(event::EventCommand),
    /// Records of removals: what, by whom and why
    #[command(subcommand, after_help = EXIT_CODES)]
    Deletion(record::DeletionCommand),
    /// What a deletion would take away: delete, get, approve
    #[command(subcommand, after_help = EXIT_CODES)]
    Plan(plan::PlanCommand),
    /// One change brought to many: list, get, members, pause, resume, abort
    #[command(subcommand, after_help = EXIT_CODES)]
    Rollout(rollout::RolloutCommand),
    /// What nobody deletes: list, set, remove, lift
    #[command(subcommand, after_help = EXIT_CODES)]
    Protection(protection::ProtectionCommand),
    /// Keys that the deletion brake stopped: list, release
    #[command(subcommand, after_help = EXIT_CODES)]
    Brake(brake::BrakeCommand),
    /// Objects that no row claims, and rows without their object: list, find, resolve, remove
    #[command(after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
    Leaks(leak::LeaksArguments),
    /// Explain the state of something: what it waits for, what blocks it, what happens next
    #[command(after_help = EXIT_CODES)]
    Explain(explain::ExplainArguments),
    /// Show what the node agent of a resource wrote, where its engine keeps it
    #[command(after_help = EXIT_CODES)]
    Logs(logs::LogsArguments),
    /// Wait until resources are in a phase, or until things are deleted
    ///
    /// Ends with 6 after the time, with 7 if a resource ends in Failed, with 5 if there is
    /// none; what is so already, and what is gone already, answers at once.
    #[command(after_help = EXIT_CODES)]
    Wait(wait_command::WaitCommandArguments),
    /// Change nothing outside for a while: no apply, no drain, no delete; observing goes on
    #[command(after_help = EXIT_CODES)]
    Freeze(control::FreezeArguments),
    /// Lift a freeze before its end; the loops continue at once
    #[command(after_help = EXIT_CODES)]
    Unfreeze(control::ReasonArguments),
    /// Act again after a start that only observed, for instance on a restored database
    #[command(after_help = EXIT_CODES)]
    Resume(control::ReasonArguments),
    /// The installation at a glance: mode and replicas, attempts by phase, blockers, nodes, leaks, clusters and loops
    #[command(after_help = EXIT_CODES)]
    Status,
    /// List the actions that a freeze or observe-only withholds
    #[command(after_help = EXIT_CODES)]
    Withheld(PageArguments),
    /// Which server commands use, with which key: add, use, list, show, remove
    #[command(subcommand, after_help = EXIT_CODES)]
    Context(context::ContextCommand),
    /// Keep a key for a server in a context, once the server has accepted it
    ///
    /// The key is that of --key-file or SLIPWAY_KEY; without one it is asked for without
    /// showing it, or read from standard input.
    #[command(after_help = EXIT_CODES)]
    Login(login::LoginArguments),
    /// Run the whole story on this machine, check it, and leave no process and no file behind
    #[command(after_help = EXIT_CODES)]
    Demo(demo::DemoArguments),
}

/// In the order of the manual.
pub(crate) const EXAMPLES: &[&[&str]] = &[
    resource::EXAMPLES,
    project::EXAMPLES,
    cloud::EXAMPLES,
    credential::EXAMPLES,
    blueprint::EXAMPLES,
    label::EXAMPLES,
    cluster::EXAMPLES,
    node::EXAMPLES,
    generator::EXAMPLES,
    stack::EXAMPLES,
    template::EXAMPLES,
    agent::EXAMPLES,
    target::EXAMPLES,
    fleet::EXAMPLES,
    tenant::EXAMPLES,
    profile::EXAMPLES,
    workspace::EXAMPLES,
    server::EXAMPLES,
    event::EXAMPLES,
    record::EXAMPLES,
    brake::EXAMPLES,
    plan::EXAMPLES,
    protection::EXAMPLES,
    rollout::EXAMPLES,
    leak::EXAMPLES,
    apply::EXAMPLES,
    get::EXAMPLES,
    export::EXAMPLES,
    sample::EXAMPLES,
    source::EXAMPLES,
    key::EXAMPLES,
    token::EXAMPLES,
    audit::EXAMPLES,
    explain::EXAMPLES,
    logs::EXAMPLES,
    wait_command::EXAMPLES,
    control::EXAMPLES,
    context::EXAMPLES,
    login::EXAMPLES,
    demo::EXAMPLES,
];

impl Command {
    pub(crate) async fn execute(self, session: &mut Session<'_>) -> Result<(), Error> {
        match self {
            Self::Resource(command) => Box::pin(resource::run(session, command)).await,
            Self::Project(command) => project::run(session, command).await,
            Self::Cloud(command) => cloud::run(session, command).await,
            Self::Credential(command) => credential::run(session, command).await,
            Self::Blueprint(command) => Box::pin(blueprint::run(session, command)).await,
            Self::Label(command) => label::run(session, command).await,
            Self::Cluster(command) => cluster::run(session, command).await,
            Self::Node(command) => node::run(session, command).await,
            Self::Token(command) => token::run(session, command).await,
            Self::Generator(command) => Box::pin(generator::run(session, command)).await,
            Self::Stack(command) => Box::pin(stack::run(session, command)).await,
            Self::Template(command) => Box::pin(template::run(session, command)).await,
            Self::Agent(command) => Box::pin(agent::run(session, command)).await,
            Self::Target(command) => Box::pin(target::run(session, command)).await,
            Self::Tenant(command) => Box::pin(tenant::run(session, command)).await,
            Self::TenantProfile(command) => profile::run(session, command).await,
            Self::Workspace(command) => Box::pin(workspace::run(session, command)).await,
            Self::Server(command) => Box::pin(server::run(session, command)).await,
            Self::Apply(arguments) => Box::pin(apply::run(session, arguments)).await,
            Self::Diff(arguments) => Box::pin(apply::diff(session, arguments)).await,
            Self::Get(arguments) => get::run(session, arguments).await,
            Self::Export(arguments) => Box::pin(export::run(session, arguments)).await,
            Self::Source(command) => source::run(session, command).await,
            Self::Key(command) => key::run(session, command).await,
            Self::Audit(command) => audit::run(session, command).await,
            Self::Event(command) => event::run(session, command).await,
            Self::Deletion(command) => record::run(session, command).await,
            Self::Brake(command) => brake::run(session, command).await,
            Self::Plan(command) => plan::run(session, command).await,
            Self::Protection(command) => protection::run(session, command).await,
            Self::Rollout(command) => rollout::run(session, command).await,
            Self::Leaks(arguments) => leak::run(session, arguments).await,
            Self::Explain(arguments) => explain::run(session, arguments).await,
            Self::Logs(arguments) => Box::pin(logs::run(session, arguments)).await,
            Self::Wait(arguments) => Box::pin(wait_command::run(session, arguments)).await,
            Self::Freeze(arguments) => control::freeze(session, arguments).await,
            Self::Unfreeze(arguments) => control::unfreeze(session, arguments).await,
            Self::Resume(arguments) => control::resume(session, arguments).await,
            Self::Status => control::status(session).await,
            Self::Withheld(page) => control::withheld(session, page).await,
            // These have no session; `run` starts them.
            Self::Demo(_) | Self::Fleet(_) | Self::Context(_) | Self::Login(_) | Self::Sample => {
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::{CommandFactory, Parser};
    use slipway_core::blocker::BlockerCode;

    use super::resource::ResourceCommand;
    use super::*;
    use crate::arguments::{ClientOptions, Output};

    #[derive(Debug, Parser)]
    #[command(version, propagate_version = true)]
    struct Line {
        #[command(flatten)]
        options: ClientOptions,
        #[command(subcommand)]
        command: Command,
    }

    fn parse(line: &str) -> Result<Line, clap::Error> {
        Line::try_parse_from(std::iter::once("slipway").chain(line.split(' ')))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Line::command().debug_assert();
    }

    #[test]
    fn the_help_names_the_exit_codes() {
        let help = parse("resource --help").unwrap_err().to_string();
        assert!(help.contains("6  --wait gave up"), "{help}");
    }

    /// The commands in remedies must be valid, also without a terminal to
    /// confirm on.
    #[test]
    fn every_remedy_is_a_command_that_goes_through() {
        for code in BlockerCode::ALL {
            for command in code.remedies().iter().filter_map(|remedy| remedy.command) {
                let line = command.replace("{id}", "web-1").replace("<why>", "because");
                let line = parse(line.strip_prefix("slipway ").unwrap()).unwrap().command;
                let agreed = match line {
                    Command::Resource(ResourceCommand::Delete { deletion, .. }) => deletion.yes,
                    Command::Resource(ResourceCommand::ForceDrain { yes, .. }) => yes,
                    _ => true,
                };
                assert!(agreed, "{code:?}: {command}");
            }
        }
    }

    #[test]
    fn a_version_is_the_blueprints_where_one_is_made() {
        let line = parse("resource create --handle a --blueprint b --version v2").unwrap();
        let Command::Resource(ResourceCommand::Create { blueprint_version, .. }) = line.command
        else {
            panic!("another command");
        };
        assert_eq!(blueprint_version.as_deref(), Some("v2"));
    }

    #[test]
    fn global_options_stand_anywhere() {
        let line = parse("resource list -o json --server http://x:1 --key k").unwrap();
        assert_eq!(line.options.output, Output::Json);
        assert_eq!(line.options.server.as_deref(), Some("http://x:1"));
        assert_eq!(line.options.key.as_ref().unwrap().expose(), "k");
        assert!(!format!("{line:?}").contains("\"k\""), "a key is not shown");
    }

    #[test]
    fn a_timeout_without_a_wait_is_refused() {
        let wrong = parse("resource delete web-1 --timeout 5s");
        assert!(wrong.unwrap_err().to_string().contains("--wait"));
        let Command::Resource(ResourceCommand::Delete { wait, .. }) =
            parse("resource delete web-1 --wait --timeout 5s --yes").unwrap().command
        else {
            panic!("another command");
        };
        assert_eq!((wait.wait, wait.timeout), (true, Duration::from_secs(5)));
    }
}
