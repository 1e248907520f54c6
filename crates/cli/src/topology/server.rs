//! `slipway server …`: the machines of workspaces.

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use slipway_core::operations::reference::ids_from;
use slipway_wire::broker::Resource;
use slipway_wire::deletion::Deletion;
use slipway_wire::problem::Problem;
use slipway_wire::topology::{Because, MarkServer, ReplaceServer, ScaleGroup, ScaledGroup, Server};

use crate::arguments::{PageArguments, WaitArguments};
use crate::client::{Client, Listing};
use crate::complete;
use crate::error::Error;
use crate::exit::Exit;
use crate::kind::{Cells, Detail, Facts, Kind as _, Row};
use crate::output::name_and_id;
use crate::session::Session;
use crate::suggest;
use crate::terminal::clean;
use crate::wait::{Goal, wait_for};

/// The list of all servers, and the first segment of the paths of a workspace.
const SERVERS: &str = "servers";
const WORKSPACES: &str = "workspaces";

/// The role whose machines are replaced only with the new one first.
const CONTROL_PLANE: &str = "ControlPlane";

#[derive(Debug, Clone, Subcommand)]
pub enum ServerCommand {
    /// List servers
    List(ServerListArguments),
    /// Show one server; `slipway resource get` shows its machine
    Get(ServerArguments),
    /// Want more servers of a group; they are made by themselves
    ScaleUp {
        /// The workspace (name or id)
        #[arg(long, add = complete::names("workspace"))]
        workspace: String,
        /// The group
        #[arg(long)]
        group: String,
        /// How many more
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        #[arg(default_value_t = 1)]
        by: u32,
        /// Why; kept in the audit
        #[arg(long)]
        reason: Option<String>,
    },
    /// Take one server down for good, or some of a group: marked ones first, then those that
    /// can be missed most
    ///
    /// Refused for a control plane, for a locked group, and if the group would have fewer Ready
    /// servers than it has to keep.
    ScaleDown(ScaleDownArguments),
    /// Take the machine of a server down and make it anew; the server keeps its name
    ///
    /// A control plane always gets its new machine first.
    Replace {
        #[command(flatten)]
        server: ServerArguments,
        /// Make the new machine first, and take the old one down when that is Ready
        #[arg(long)]
        surge: bool,
        /// Why; kept in the audit
        #[arg(long)]
        reason: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        wait: WaitArguments,
    },
    /// Mark a server to go first if a group is scaled down by a number
    Mark {
        #[command(flatten)]
        server: ServerArguments,
        /// Take the mark away
        #[arg(long)]
        off: bool,
    },
    /// Delete a server as it is, also below the least of its group; for admins
    Delete {
        #[command(flatten)]
        server: ServerArguments,
        /// Why; kept with the deletion
        #[arg(long)]
        reason: String,
        /// Pass also the quorum of control planes, the last load balancer, and the list of the
        /// provider
        #[arg(long)]
        break_glass: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        wait: WaitArguments,
    },
}

#[derive(Debug, Clone, Args)]
pub struct ServerListArguments {
    /// Only of this workspace (name or id)
    #[arg(long, add = complete::names("workspace"))]
    pub workspace: Option<String>,
    /// Only of this project (name or id)
    #[arg(long, add = complete::names("project"))]
    pub project: Option<String>,
    #[command(flatten)]
    pub page: PageArguments,
}

impl From<ServerListArguments> for Listing {
    fn from(arguments: ServerListArguments) -> Self {
        Self::from(arguments.page)
            .with("workspace", arguments.workspace)
            .with("project", arguments.project)
    }
}

#[derive(Debug, Clone, Args)]
pub struct ServerArguments {
    /// Its name, its id or the beginning of it
    #[arg(value_name = "SERVER", add = complete::names("server"))]
    pub reference: String,
    /// Its workspace (name or id); not needed if no other server has the name
    #[arg(long, add = complete::names("workspace"))]
    pub workspace: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct ScaleDownArguments {
    /// Its name, its id or the beginning of it
    #[arg(
        value_name = "SERVER",
        required_unless_present = "group",
        conflicts_with = "group",
        add = complete::names("server")
    )]
    pub reference: Option<String>,
    /// The workspace (name or id); not needed if no other server has the name
    #[arg(long, add = complete::names("workspace"))]
    pub workspace: Option<String>,
    /// Some servers of this group
    #[arg(long, requires = "workspace")]
    pub group: Option<String>,
    /// How many; 1 if not given
    #[arg(long, value_name = "N", requires = "group")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub by: Option<u32>,
    /// Why; kept with the deletion
    #[arg(long)]
    pub reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub wait: WaitArguments,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway server list",
    "slipway server list --workspace cluster",
    "slipway server get worker-1 --workspace cluster",
    "slipway server scale-up --workspace cluster --group workers --by 2",
    "slipway server scale-down worker-3 --reason idle --yes --wait",
    "slipway server scale-down --workspace cluster --group workers --by 2 --yes",
    "slipway server replace worker-1 --workspace cluster --reason disk-is-full --yes --wait",
    "slipway server replace cp-1 --surge --yes",
    "slipway server mark worker-1 --workspace cluster",
    "slipway server mark worker-1 --off",
    "slipway server delete worker-1 --workspace cluster --reason broken --yes",
    "slipway server delete cp-1 --reason quorum-is-lost --break-glass --yes",
];

impl Row for Server {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("WORKSPACE", self.workspace.clone()),
            ("GROUP", self.group.clone()),
            ("ROLE", self.role.clone()),
            ("PHASE", self.phase.clone()),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("ID", self.id.clone())]
    }
}

impl Detail for Server {
    const NOUN: &'static str = "server";

    fn facts(&self) -> Facts {
        vec![
            ("name", Some(self.name.clone())),
            ("id", Some(self.id.clone())),
            ("workspace", Some(name_and_id(Some(&self.workspace), &self.workspace_id))),
            ("group", Some(self.group.clone())),
            ("role", Some(self.role.clone())),
            ("phase", Some(self.phase.clone())),
        ]
    }
}

impl Detail for ScaledGroup {
    fn facts(&self) -> Facts {
        vec![
            ("group", Some(self.group.clone())),
            ("wanted", Some(self.wanted.to_string())),
            ("leaving", Some(self.leaving.join(", "))),
        ]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: ServerCommand) -> Result<(), Error> {
    match command {
        ServerCommand::List(arguments) => session.list_at::<Server>(&[SERVERS], arguments).await,
        ServerCommand::Get(arguments) => {
            let found = arguments.find(&session.client).await?;
            session.show_details(&found);
            Ok(())
        }
        ServerCommand::ScaleUp { workspace, group, by, reason } => {
            let body = ScaleGroup { by, reason };
            let path = [WORKSPACES, &workspace, "groups", &group, "scale-up"];
            match session.client.post::<ScaledGroup>(&path, &body).await {
                Ok(scaled) => session.show_details(&scaled),
                Err(error) => {
                    return Err(suggest::reference(&session.client, error, &workspace).await);
                }
            }
            Ok(())
        }
        ServerCommand::ScaleDown(arguments) => scale_down(session, arguments).await,
        ServerCommand::Replace { server, surge, reason, yes, wait } => {
            session.terminal.can_agree(yes)?;
            let found = server.find(&session.client).await?;
            let surge = surge || found.role == CONTROL_PLANE;
            replace(session, &found, &ReplaceServer { surge, reason }, yes, &wait).await
        }
        ServerCommand::Mark { server, off } => {
            let found = server.find(&session.client).await?;
            let path = [WORKSPACES, &found.workspace_id, SERVERS, &found.id, "mark"];
            session.post::<Server>(&path, &MarkServer { marked: !off }).await
        }
        ServerCommand::Delete { server, reason, break_glass, yes, wait } => {
            session.terminal.can_agree(yes)?;
            let found = server.find(&session.client).await?;
            let question = match break_glass {
                true => format!("Delete {}, whatever its quorum is?", named(&found)),
                false => format!("Delete {} as it is?", named(&found)),
            };
            session.terminal.agree(yes, &question)?;
            let mut query = vec![("reason", reason)];
            query.extend(break_glass.then(|| ("break_glass", true.to_string())));
            let path = [WORKSPACES, &found.workspace_id, SERVERS, &found.id];
            let begun: Deletion = session.client.delete(&path, &query).await?;
            finish(session, &found, begun, &wait).await
        }
    }
}

/// `server `worker-1` of `cluster` (0192f0c1-…)`.
fn named(server: &Server) -> String {
    clean(&format!("server `{}` of `{}` ({})", server.name, server.workspace, server.id))
}

impl ServerArguments {
    async fn find(&self, client: &Client) -> Result<Server, Error> {
        find(client, &self.reference, self.workspace.as_deref()).await
    }
}

/// The server that is meant: without a workspace the only one of that name among all that the
/// key sees.
async fn find(client: &Client, given: &str, workspace: Option<&str>) -> Result<Server, Error> {
    let names = (SERVERS, "name");
    if let Some(workspace) = workspace {
        let path = [WORKSPACES, workspace, SERVERS, given];
        return match client.get(&path).await {
            Ok(found) => Ok(found),
            Err(Error::Problem(mut problem)) if problem.code == "server_not_found" => {
                let meant = suggest::near(client, names, None, given).await;
                problem.message.push_str(&meant);
                Err(Error::Problem(problem))
            }
            Err(error) => Err(suggest::reference(client, error, workspace).await),
        };
    }
    let all = client.list::<Server>(&[SERVERS], Listing::default()).await?.items;
    let is_named = |server: &&Server| server.name == given || server.id == given;
    let mut found: Vec<&Server> = all.iter().filter(is_named).collect();
    if found.is_empty() && ids_from(given).is_some() {
        found = all.iter().filter(|server| server.id.starts_with(given)).collect();
    }
    match found[..] {
        [one] => Ok(one.clone()),
        [] => {
            let meant = suggest::near(client, names, None, given).await;
            Err(Error::NotFound(format!("there is no server `{given}`{meant}")))
        }
        _ => {
            let shown = |server: &&Server| format!("`{}` ({})", server.workspace, server.id);
            let workspaces: Vec<_> = found.iter().map(shown).collect();
            Err(Error::Usage(format!(
                "`{given}` names a server in each of the workspaces {}; choose with --workspace, or give its id",
                workspaces.join(", ")
            )))
        }
    }
}

async fn scale_down(session: &mut Session<'_>, arguments: ScaleDownArguments) -> Result<(), Error> {
    let ScaleDownArguments { reference, workspace, group, by, reason, yes, wait } = arguments;
    session.terminal.can_agree(yes)?;
    if let (Some(workspace), Some(group)) = (&workspace, &group) {
        let by = by.unwrap_or(1);
        let plural = if by == 1 { "" } else { "s" };
        let question = clean(&format!(
            "Take {by} server{plural} of group `{group}` of `{workspace}` down for good?"
        ));
        session.terminal.agree(yes, &question)?;
        return scale_group(session, workspace, group, &ScaleGroup { by, reason }, &wait).await;
    }
    let reference = reference.unwrap_or_default();
    let found = find(&session.client, &reference, workspace.as_deref()).await?;
    session.terminal.agree(yes, &format!("Take {} down for good?", named(&found)))?;
    let path = [WORKSPACES, &found.workspace_id, SERVERS, &found.id, "scale-down"];
    let begun: Deletion = session.client.post(&path, &Because { reason }).await?;
    finish(session, &found, begun, &wait).await
}

/// Shows the deletion of a server, after its end if that is waited for.
async fn finish(
    session: &mut Session<'_>,
    server: &Server,
    begun: Deletion,
    wait: &WaitArguments,
) -> Result<(), Error> {
    let mut deletion = begun;
    if wait.wait {
        until_gone(session, &server.id, wait.timeout).await?;
        deletion = session.client.get(&[Deletion::PATH, &deletion.id]).await?;
    }
    session.show_details(&deletion);
    Ok(())
}

/// Takes some servers of a group down. A gate may refuse after some of them went: that is said
/// before the refusal.
async fn scale_group(
    session: &mut Session<'_>,
    workspace: &str,
    group: &str,
    body: &ScaleGroup,
    wait: &WaitArguments,
) -> Result<(), Error> {
    // Their ids, as long as they are listed.
    let wanted = Listing::default().with("workspace", Some(workspace));
    let servers = match wait.wait {
        true => session.client.list::<Server>(&[SERVERS], wanted).await?.items,
        false => Vec::new(),
    };
    let path = [WORKSPACES, workspace, "groups", group, "scale-down"];
    let scaled: ScaledGroup = match session.client.post(&path, body).await {
        Ok(scaled) => scaled,
        Err(Error::Problem(problem)) => {
            let leaving = leaving(&problem);
            if !leaving.is_empty() {
                let names = clean(&leaving.join(", "));
                session.terminal.say(&format!("on their way already: {names}"));
            }
            let error = Error::Problem(problem);
            return Err(suggest::reference(&session.client, error, workspace).await);
        }
        Err(error) => return Err(error),
    };
    if wait.wait {
        let begun = Instant::now();
        for server in servers.iter().filter(|one| scaled.leaving.contains(&one.name)) {
            let left = wait.timeout.saturating_sub(begun.elapsed());
            until_gone(session, &server.id, left).await?;
        }
    }
    session.show_details(&scaled);
    Ok(())
}

/// The servers that went before a gate refused.
fn leaving(problem: &Problem) -> Vec<&str> {
    let details = problem.details.as_ref();
    let leaving = details.and_then(|details| details["leaving"].as_array());
    leaving.into_iter().flatten().filter_map(|name| name.as_str()).collect()
}

async fn replace(
    session: &mut Session<'_>,
    server: &Server,
    body: &ReplaceServer,
    yes: bool,
    wait: &WaitArguments,
) -> Result<(), Error> {
    let question = match body.surge {
        true => format!(
            "Make {} anew, and take the old machine down when the new one is Ready? What runs on the old one ends then.",
            named(server)
        ),
        false => {
            format!("Take {} down and make it anew? What runs on it ends.", named(server))
        }
    };
    session.terminal.agree(yes, &question)?;
    // Before, so that the wait tells the next attempt from this one.
    let resource: Resource = session.client.get(&["resources", &server.id]).await?;
    let path = [WORKSPACES, &server.workspace_id, SERVERS, &server.id, "replace"];
    let mut replaced: Server = session.client.post(&path, body).await?;
    if wait.wait {
        let (client, goal) = (&session.client, Goal::ReadyAfter(resource.attempt.number));
        wait_for(client, &resource, goal, wait.timeout, session.terminal).await?;
        replaced = session.client.get(&path[..4]).await?;
    }
    session.show_details(&replaced);
    Ok(())
}

/// Waits until the machine of a server is gone; one that is gone already is done.
async fn until_gone(session: &mut Session<'_>, id: &str, limit: Duration) -> Result<(), Error> {
    match session.client.get::<Resource>(&["resources", id]).await {
        Ok(found) => {
            wait_for(&session.client, &found, Goal::Deleted, limit, session.terminal).await?;
            Ok(())
        }
        Err(error) if error.exit() == Exit::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_says_who_went_before_it() {
        let problem = |details| Problem {
            kind: "/docs/problems/scale_min_violation".to_owned(),
            title: "scale_min_violation".to_owned(),
            status: 422,
            detail: String::new(),
            instance: String::new(),
            code: "scale_min_violation".to_owned(),
            message: String::new(),
            details,
            errors: Vec::new(),
            correlation_id: String::new(),
        };
        let some = problem(Some(json!({ "min": 2, "leaving": ["worker-3", "worker-2"] })));
        assert_eq!(leaving(&some), ["worker-3", "worker-2"]);
        assert!(leaving(&problem(Some(json!({ "min": 2 })))).is_empty());
        assert!(leaving(&problem(None)).is_empty());
    }
}
