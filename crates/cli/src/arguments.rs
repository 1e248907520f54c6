//! The command line as data. Says what can be asked, does nothing.

mod access;
mod catalog;
mod control;
mod explain;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;
use slipway_core::secret::Secret;

pub(crate) use self::control::{FreezeArguments, ReasonArguments};
use crate::exit::EXIT_CODES;

pub(crate) use access::*;
pub(crate) use catalog::*;
pub(crate) use explain::{ExplainArguments, Kind};

/// What every command of the client takes.
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
    /// How results are shown
    #[arg(short, long, value_enum, default_value_t, global = true)]
    pub output: Output,
}

/// The shape of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    #[default]
    Table,
    Json,
    Yaml,
}

/// The commands of the client, noun first.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Declared infrastructure: create, list, get, delete, retry, explain, force-drain
    #[command(subcommand, after_help = EXIT_CODES)]
    Resource(ResourceCommand),
    /// What resources belong to: create, list, get, relabel, delete
    #[command(subcommand, after_help = EXIT_CODES)]
    Project(ProjectCommand),
    /// Accounts of providers: create, list, get, update, delete
    #[command(subcommand, after_help = EXIT_CODES)]
    Cloud(CloudCommand),
    /// Where credentials lie, and who may use them: create, list, get, update, delete, assign, unassign
    #[command(subcommand, after_help = EXIT_CODES)]
    Credential(CredentialCommand),
    /// What resources are made from: create, publish, import, list, get, versions, retire
    #[command(subcommand, after_help = EXIT_CODES)]
    Blueprint(BlueprintCommand),
    /// What labels mean: define, list, get, delete
    #[command(subcommand, after_help = EXIT_CODES)]
    Label(LabelCommand),
    /// Where projects live: create, list, get, assign, unassign, assignments
    #[command(subcommand, after_help = EXIT_CODES)]
    Cluster(ClusterCommand),
    /// Enrolled node agents
    #[command(subcommand, after_help = EXIT_CODES)]
    Node(NodeCommand),
    /// Bootstrap tokens by hand: issue, list, show, revoke
    #[command(subcommand, after_help = EXIT_CODES)]
    Token(TokenCommand),
    /// Who may use the API: create, list, show, rotate, revoke, whoami
    #[command(subcommand, after_help = EXIT_CODES)]
    Key(KeyCommand),
    /// Who did what, to what, and why: list, export
    #[command(subcommand, after_help = EXIT_CODES)]
    Audit(AuditCommand),
    /// The lifecycle, event by event
    #[command(subcommand, after_help = EXIT_CODES)]
    Event(EventCommand),
    /// What was asked to go, by whom and why
    #[command(subcommand, after_help = EXIT_CODES)]
    Deletion(DeletionCommand),
    /// What stands outside and no row claims, and the reverse: list, find, resolve, remove
    #[command(after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
    Leaks(LeaksArguments),
    /// Say why something is where it is, what blocks it, and what happens next
    #[command(after_help = EXIT_CODES)]
    Explain(ExplainArguments),
    /// Change nothing outside for a while: no apply, no drain, no delete; observing goes on
    #[command(after_help = EXIT_CODES)]
    Freeze(FreezeArguments),
    /// Lift a freeze before its end; everything goes on at once
    #[command(after_help = EXIT_CODES)]
    Unfreeze(ReasonArguments),
    /// Act again after a start that only observed, for instance on a restored database
    #[command(after_help = EXIT_CODES)]
    Resume(ReasonArguments),
    /// The mode of the installation: acting, frozen or observing, and which replicas obey it
    #[command(after_help = EXIT_CODES)]
    Status,
    /// What would be done if it were not frozen or only observing
    #[command(after_help = EXIT_CODES)]
    Plan(PageArguments),
    /// Run the whole story on this machine, check it, and leave no process and no file behind
    #[command(after_help = EXIT_CODES)]
    Demo(DemoArguments),
}

#[derive(Debug, Clone, Subcommand)]
pub enum ResourceCommand {
    /// Declare a resource; it is brought to Ready by itself
    // `--version` is the blueprint's here.
    #[command(disable_version_flag = true)]
    Create(CreateArguments),
    /// List resources
    List(ListArguments),
    /// Show one resource
    Get(TargetArguments),
    /// Replace all labels of a resource; they win over those of its project
    Relabel(ResourceRelabelArguments),
    /// Drain a resource, take it down in order and release it
    Delete(DeleteArguments),
    /// Say why a resource is where it is, and what would move it
    Explain(TargetArguments),
    /// Take down what failed for good and try again
    Retry(RetryArguments),
    /// Do not wait for a node that does not drain: revoke its key and go on
    ForceDrain(ForceDrainArguments),
}

#[derive(Debug, Clone, Subcommand)]
pub enum NodeCommand {
    /// List nodes, also those that are deregistered
    List(PageArguments),
    /// Show one node
    Get(IdArguments),
}

#[derive(Debug, Clone, Subcommand)]
pub enum EventCommand {
    /// List events in the order of their positions
    List(EventListArguments),
    /// Show events as they happen, until interrupted; a lost connection is taken up again
    Follow(EventFollowArguments),
    /// List who gets every event, and how far each is
    Subscriptions,
    /// Forget a subscription whose sink is gone for good; events are kept for it until then
    Unsubscribe(UnsubscribeArguments),
}

#[derive(Debug, Clone, Subcommand)]
pub enum DeletionCommand {
    /// List deletions
    List(PageArguments),
    /// Show one deletion
    Get(IdArguments),
}

/// Without a verb: list.
#[derive(Debug, Clone, Args)]
pub struct LeaksArguments {
    #[command(subcommand)]
    pub command: Option<LeaksCommand>,
    #[command(flatten)]
    pub list: LeakListArguments,
}

#[derive(Debug, Clone, Subcommand)]
pub enum LeaksCommand {
    /// List leaks; the open ones if not said otherwise
    List(LeakListArguments),
    /// Show one leak
    Get(IdArguments),
    /// Look at everything now. What is seen for the first time counts when it is seen again, a
    /// lease later
    Find,
    /// Say that a leak is over, after its object was removed by hand
    Resolve(LeakEndArguments),
    /// Remove the object of a leak that no row claims
    Remove(LeakRemoveArguments),
}

#[derive(Debug, Clone, Args)]
pub struct LeakListArguments {
    /// Only in this state
    #[arg(long, value_enum, default_value_t)]
    pub state: LeakState,
    /// Only of this kind, for instance unclaimed_object
    #[arg(long)]
    pub kind: Option<String>,
    #[command(flatten)]
    pub page: PageArguments,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LeakState {
    #[default]
    Open,
    Resolved,
    All,
}

#[derive(Debug, Clone, Args)]
pub struct LeakEndArguments {
    /// The id of the leak
    pub id: String,
    /// Why; kept in the audit
    #[arg(long)]
    pub reason: String,
}

#[derive(Debug, Clone, Args)]
pub struct LeakRemoveArguments {
    #[command(flatten)]
    pub leak: LeakEndArguments,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct CreateArguments {
    /// The name of the slot, unique in its project
    #[arg(long)]
    pub handle: String,
    /// The blueprint to make it from, for instance local-node
    #[arg(long)]
    pub blueprint: String,
    /// Project name or id
    #[arg(long)]
    pub project: Option<String>,
    /// Version of the blueprint; the newest if not given
    #[arg(long = "version", value_name = "VERSION")]
    pub blueprint_version: Option<String>,
    /// Credential name or id; the project's only one if not given
    #[arg(long)]
    pub credential: Option<String>,
    /// A parameter of the blueprint; integers and true/false are taken as such
    #[arg(short, long = "parameter", value_name = "NAME=VALUE", value_parser = parse_parameter)]
    pub parameters: Vec<(String, Value)>,
    /// A label
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub labels: Vec<(String, String)>,
    #[command(flatten)]
    pub wait: WaitArguments,
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

#[derive(Debug, Clone, Args)]
pub struct ListArguments {
    /// Only of this project (name or id)
    #[arg(long)]
    pub project: Option<String>,
    /// Only in this phase, for instance Ready
    #[arg(long)]
    pub phase: Option<String>,
    /// Only with this label in effect; given several times, with all of them
    #[arg(short, long = "label", value_name = "KEY[=VALUE]")]
    pub labels: Vec<String>,
    /// Only what does not advance, or for this reason (the code of a blocker)
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "true")]
    pub blocked: Option<String>,
    /// Also those whose deletion is done
    #[arg(long)]
    pub show_deleted: bool,
    #[command(flatten)]
    pub page: PageArguments,
}

#[derive(Debug, Clone, Args)]
pub struct ResourceRelabelArguments {
    #[command(flatten)]
    pub target: TargetArguments,
    /// A label; those that are not given are taken away
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub labels: Vec<(String, String)>,
}

#[derive(Debug, Clone, Args)]
pub struct PageArguments {
    /// Stop after so many; all if not given
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, Args)]
pub struct EventListArguments {
    /// Only events after this position
    #[arg(long, value_name = "POSITION")]
    pub after: Option<i64>,
    #[command(flatten)]
    pub page: PageArguments,
}

#[derive(Debug, Clone, Args)]
pub struct EventFollowArguments {
    /// Begin after this position, 0 for the first event; from now on if not given
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(0..))]
    pub after: Option<i64>,
    /// End after so many events
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, Args)]
pub struct UnsubscribeArguments {
    /// The name of the subscription
    pub name: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct IdArguments {
    /// Its id
    pub id: String,
}

#[derive(Debug, Clone, Args)]
pub struct TargetArguments {
    /// Id or handle of the resource
    #[arg(value_name = "RESOURCE")]
    pub target: String,
    /// The project of the handle (name or id)
    #[arg(long)]
    pub project: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct DeleteArguments {
    #[command(flatten)]
    pub target: TargetArguments,
    /// Why; kept with the deletion
    #[arg(long)]
    pub reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub wait: WaitArguments,
}

#[derive(Debug, Clone, Args)]
pub struct RetryArguments {
    #[command(flatten)]
    pub target: TargetArguments,
    /// Why it should work now
    #[arg(long)]
    pub reason: String,
    #[command(flatten)]
    pub wait: WaitArguments,
}

#[derive(Debug, Clone, Args)]
pub struct ForceDrainArguments {
    #[command(flatten)]
    pub target: TargetArguments,
    /// Why; what the node was doing may be lost
    #[arg(long)]
    pub reason: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct DemoArguments {
    /// What makes the nodes: processes of this machine, or Crossplane on a cluster
    #[arg(long, value_enum, default_value_t)]
    pub substrate: DemoSubstrate,
    /// The way to that cluster. Something has to play Crossplane there, and the kind of the
    /// demo's composites has to be known: see docs/operations.md
    #[arg(long, value_name = "FILE", required_if_eq("substrate", "crossplane"))]
    pub kubeconfig: Option<PathBuf>,
    /// Run on this database (postgres://… or sqlite:PATH) instead of a SQLite file of its own.
    /// The rows of the demo stay there: a project, its resources, events, audit and a key
    #[arg(long, value_name = "URL", hide_env_values = true, value_parser = parse_secret)]
    pub database_url: Option<Secret>,
    /// Give up after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub timeout: Duration,
}

/// Where the demo has its nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DemoSubstrate {
    #[default]
    Local,
    Crossplane,
}

impl DemoSubstrate {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Crossplane => "crossplane",
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the signature that clap wants")]
fn parse_secret(text: &str) -> Result<Secret, String> {
    Ok(Secret::new(text))
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

fn parse_parameter(text: &str) -> Result<(String, Value), String> {
    let (name, text) = parse_pair(text)?;
    // Only what a blueprint can ask for besides text; `1.5`, `null` and `[1]`
    // stay the text that was typed.
    let value = match serde_json::from_str::<Value>(&text) {
        Ok(value) if value.is_boolean() || value.is_i64() => value,
        _ => Value::String(text),
    };
    Ok((name, value))
}

/// A number with a unit, as `200ms`, `90s`, `5m`, `1h`.
fn parse_duration(text: &str) -> Result<Duration, String> {
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

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use serde_json::json;
    use slipway_core::blocker::BlockerCode;

    use super::*;

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

    /// What a blocker tells people to type has to be what they can type, also
    /// where nobody is asked.
    #[test]
    fn every_remedy_is_a_command_that_goes_through() {
        for code in BlockerCode::ALL {
            for command in code.remedies().iter().filter_map(|remedy| remedy.command) {
                let line = command.replace("{id}", "web-1").replace("<why>", "because");
                let line = parse(line.strip_prefix("slipway ").unwrap()).unwrap().command;
                let agreed = match line {
                    Command::Resource(ResourceCommand::Delete(delete)) => delete.yes,
                    Command::Resource(ResourceCommand::ForceDrain(force)) => force.yes,
                    _ => true,
                };
                assert!(agreed, "{code:?}: {command}");
            }
        }
    }

    #[test]
    fn a_version_is_the_blueprints_where_one_is_made() {
        let line = parse("resource create --handle a --blueprint b --version v2").unwrap();
        let Command::Resource(ResourceCommand::Create(create)) = line.command else {
            panic!("another command");
        };
        assert_eq!(create.blueprint_version.as_deref(), Some("v2"));
    }

    #[test]
    fn global_options_stand_anywhere() {
        let line = parse("resource list -o json --server http://x:1 --key k").unwrap();
        assert_eq!(line.options.output, Output::Json);
        assert_eq!(line.options.server, "http://x:1");
        assert_eq!(line.options.key.as_ref().unwrap().expose(), "k");
        assert!(!format!("{line:?}").contains("\"k\""), "a key is not shown");
    }

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

    #[test]
    fn a_timeout_without_a_wait_is_refused() {
        let wrong = parse("resource delete web-1 --timeout 5s");
        assert!(wrong.unwrap_err().to_string().contains("--wait"));
        let Command::Resource(ResourceCommand::Delete(delete)) =
            parse("resource delete web-1 --wait --timeout 5s --yes").unwrap().command
        else {
            panic!("another command");
        };
        assert_eq!((delete.wait.wait, delete.wait.timeout), (true, Duration::from_secs(5)));
    }
}
