//! `slipway workspace …`: servers that are declared together and taken down together.

use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;
use slipway_wire::deletion::Deletion;
use slipway_wire::topology::{
    Because, CancelledTeardown, Group, TeardownOrder, TeardownWorkspace, Workspace,
};

use super::demo::WorkspaceDemoArguments;
use super::tree::tree;
use super::wait::until_done;
use crate::arguments::{
    DeletedListArguments, NamedArguments, NamedDeleteArguments, Output, WaitArguments,
};
use crate::client::Listing;
use crate::complete;
use crate::deletion::restore;
use crate::error::Error;
use crate::files::apply::{self, FileArguments};
use crate::kind::{Cells, Detail, Facts, Kind, Row, details, table};
use crate::operations::explain;
use crate::output::{
    Layout, dash_if_empty, name_and_id, optional_time, or_dash, time, wrap, yes_no,
};
use crate::session::Session;
use crate::suggest;
use crate::terminal::clean;

#[derive(Debug, Clone, Subcommand)]
pub enum WorkspaceCommand {
    /// List workspaces
    List(WorkspaceListArguments),
    /// Show one workspace, its groups, and what blocks it
    Get(NamedArguments),
    /// Show what applying files would do to the servers of a workspace, and the gates in the way
    ///
    /// What comes, what changes (in place, or by another machine), what goes. Writes nothing. With
    /// the plan that it names, `slipway apply` does exactly that, or nothing.
    Plan(FileArguments),
    /// Take a workspace down with all its servers, in order
    ///
    /// What depends on something goes before it; workers go before load balancers, and control
    /// planes last, one at a time. Each stage waits until the one before is proven gone.
    Teardown(TeardownArguments),
    /// Delete a workspace that has no servers
    Delete(NamedDeleteArguments),
    /// Make and take down nothing of a workspace until it is resumed, a teardown included
    Pause(BecauseArguments),
    /// Let a workspace go on
    Resume(BecauseArguments),
    /// Stop the teardown of a workspace: what is left of it stays, paused
    ///
    /// Servers whose teardown began go on leaving. The workspace is paused, so that nothing is
    /// made anew before somebody resumes it.
    Cancel(BecauseArguments),
    /// Run a workspace on this machine, check every fact, and leave no process and no file behind
    ///
    /// A control plane, a load balancer and three workers come up in the order of their
    /// dependencies; two gates refuse; one worker is scaled down; then all is taken down in
    /// order. Ends with 0 only if all of it is so by the API. The last line is JSON.
    Demo(WorkspaceDemoArguments),
}

#[derive(Debug, Clone, Args)]
pub struct WorkspaceListArguments {
    /// Only of this project (name or id)
    #[arg(long, add = complete::names("project"))]
    pub project: Option<String>,
    #[command(flatten)]
    pub list: DeletedListArguments,
}

impl From<WorkspaceListArguments> for Listing {
    fn from(arguments: WorkspaceListArguments) -> Self {
        Self::from(arguments.list).with("project", arguments.project)
    }
}

#[derive(Debug, Clone, Args)]
pub struct TeardownArguments {
    /// Its name, its id or the beginning of it
    #[arg(value_name = "NAME", add = complete::names(""))]
    pub reference: String,
    /// Its name once more, where nobody can be asked to type it
    #[arg(long, value_name = "NAME")]
    pub confirm: Option<String>,
    /// Why; kept with the deletion
    #[arg(long)]
    pub reason: Option<String>,
    /// Only show the order in which its servers would go
    #[arg(long, conflicts_with = "wait")]
    pub dry_run: bool,
    /// Take away what this plan names and nothing else: `slipway plan delete workspace`
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<String>,
    /// As an admin, pass the brake and the approval; takes a reason
    #[arg(long, requires = "reason")]
    pub break_glass: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub wait: WaitArguments,
}

#[derive(Debug, Clone, Args)]
pub struct BecauseArguments {
    /// Its name, its id or the beginning of it
    #[arg(value_name = "NAME", add = complete::names(""))]
    pub reference: String,
    /// Why; kept in the audit
    #[arg(long)]
    pub reason: Option<String>,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway workspace list",
    "slipway workspace list --project shop",
    "slipway workspace get cluster",
    "slipway workspace plan -f cluster.yaml",
    "slipway workspace teardown cluster --dry-run",
    "slipway workspace teardown cluster --yes --confirm cluster --reason moved --wait",
    "slipway workspace delete cluster --reason unused --yes",
    "slipway workspace pause cluster --reason maintenance",
    "slipway workspace resume cluster",
    "slipway workspace cancel cluster --reason needed",
    "slipway workspace demo",
    "slipway workspace demo --timeout 180s",
];

impl Kind for Workspace {
    const PATH: &'static str = "workspaces";
}

/// Servers that there are, that are Ready and stay, and that there should be.
fn sums(workspace: &Workspace) -> [u64; 3] {
    let sum = |count: fn(&Group) -> u32| {
        workspace.groups.iter().map(|group| u64::from(count(group))).sum::<u64>()
    };
    let wanted = |group: &Group| if group.dropped { 0 } else { group.wanted };
    [sum(|group| group.servers), sum(|group| group.ready), sum(wanted)]
}

/// `3 of 5 servers Ready`.
pub(super) fn counted(workspace: &Workspace) -> String {
    let [_, ready, wanted] = sums(workspace);
    format!("{ready} of {wanted} servers Ready")
}

/// Whether every group has exactly the servers that it is to have, all of them Ready.
pub(super) fn is_complete(workspace: &Workspace) -> bool {
    let is_complete = |group: &Group| {
        let wanted = if group.dropped { 0 } else { group.wanted };
        group.servers == wanted && group.ready == wanted
    };
    workspace.groups.iter().all(is_complete)
}

fn state(workspace: &Workspace) -> &'static str {
    let is_paused = workspace.paused_at.is_some();
    match (&workspace.deleted_at, &workspace.deletion_id) {
        (Some(_), _) => "deleted",
        (None, Some(_)) if is_paused => "leaving, paused",
        (None, Some(_)) => "leaving",
        (None, None) if is_paused => "paused",
        (None, None) if !workspace.blockers.is_empty() => "blocked",
        (None, None) if is_complete(workspace) => "ready",
        (None, None) => "converging",
    }
}

impl Row for Workspace {
    fn cells(&self) -> Cells {
        let [servers, ready, _] = sums(self);
        vec![
            ("NAME", self.name.clone()),
            ("PROJECT", or_dash(self.project.as_deref())),
            ("GROUPS", self.groups.len().to_string()),
            ("SERVERS", servers.to_string()),
            ("READY", ready.to_string()),
            ("STATE", state(self).to_owned()),
        ]
    }

    fn wide(&self) -> Cells {
        vec![
            ("AGE", self.created_at.clone()),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
            ("ID", self.id.clone()),
        ]
    }
}

impl Detail for Workspace {
    const NOUN: &'static str = "workspace";

    fn facts(&self) -> Facts {
        let [servers, ready, wanted] = sums(self);
        vec![
            ("name", Some(self.name.clone())),
            ("id", Some(self.id.clone())),
            ("project", Some(name_and_id(self.project.as_deref(), &self.project_id))),
            ("state", Some(state(self).to_owned())),
            ("servers", Some(format!("{servers} of {wanted}, {ready} of them Ready"))),
            ("paused", optional_time(self.paused_at.as_ref())),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
            ("deletion", self.deletion_id.clone()),
            ("revision", Some(self.revision.to_string())),
        ]
    }

    fn open_deletion(&self) -> Option<&str> {
        self.deletion_id.as_deref().filter(|_| self.deleted_at.is_none())
    }
}

impl Row for Group {
    fn cells(&self) -> Cells {
        let name = match self.dropped {
            true => format!("{} (dropped)", self.name),
            false => self.name.clone(),
        };
        vec![
            ("NAME", name),
            ("ROLE", self.role.clone()),
            ("WANTED", self.wanted.to_string()),
            ("MIN", self.min.to_string()),
            ("MAX", self.max.to_string()),
            ("SERVERS", self.servers.to_string()),
            ("READY", self.ready.to_string()),
            ("LOCK", yes_no(self.delete_lock)),
            ("DEPENDS ON", dash_if_empty(self.depends_on.join(", "))),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("NAMES", self.hostname_pattern.clone()), ("BLUEPRINT", self.blueprint.clone())]
    }
}

impl Detail for CancelledTeardown {
    fn facts(&self) -> Facts {
        let names = |names: &[String]| Some(dash_if_empty(names.join(", ")));
        vec![
            ("workspace", Some(self.workspace.clone())),
            ("gone", names(&self.gone)),
            ("leaving", names(&self.leaving)),
            ("staying", names(&self.staying)),
        ]
    }
}

/// The facts, the groups, and the blockers with what to do about them.
fn shown(workspace: &Workspace, layout: Layout) -> String {
    let mut parts = vec![details(workspace, layout)];
    if !workspace.groups.is_empty() {
        parts.push(table(&workspace.groups, layout));
    }
    if !workspace.blockers.is_empty() {
        let blockers = workspace.blockers.iter().map(|found| explain::blocker(found, "  "));
        let lines: Vec<_> = std::iter::once("Blockers:".to_owned()).chain(blockers).collect();
        parts.push(wrap(&lines.join("\n"), layout.width.filter(|_| !layout.wide)));
    }
    parts.join("\n\n")
}

pub(crate) async fn run(session: &mut Session<'_>, command: WorkspaceCommand) -> Result<(), Error> {
    match command {
        WorkspaceCommand::List(arguments) => session.list::<Workspace>(arguments).await,
        WorkspaceCommand::Get(arguments) => {
            let found = find(session, &arguments.reference).await?;
            restore::lead(session, &found).await?;
            match session.output {
                Output::Name => session.show_details(&found),
                _ => session.show(&found, shown),
            }
            Ok(())
        }
        WorkspaceCommand::Plan(arguments) => apply::plan(session, arguments).await,
        WorkspaceCommand::Teardown(arguments) => teardown(session, arguments).await,
        WorkspaceCommand::Delete(arguments) => {
            session.delete::<Workspace>("the workspace", arguments).await
        }
        WorkspaceCommand::Pause(arguments) => {
            let paused: Workspace = post(session, arguments, "pause").await?;
            session.show_details(&paused);
            Ok(())
        }
        WorkspaceCommand::Resume(arguments) => {
            let resumed: Workspace = post(session, arguments, "resume").await?;
            session.show_details(&resumed);
            Ok(())
        }
        WorkspaceCommand::Cancel(arguments) => {
            let cancelled: CancelledTeardown = post(session, arguments, "cancel").await?;
            session.show_details(&cancelled);
            // Before its grace was over nothing had begun, and the workspace goes on.
            let began = !(cancelled.gone.is_empty() && cancelled.leaving.is_empty());
            if session.output.is_for_people() && began {
                let name = clean(&cancelled.workspace);
                session.terminal.say(&format!(
                    "it is paused; to let it go on: slipway workspace resume {name}"
                ));
            }
            Ok(())
        }
        // It has no session; `run` of the crate starts it.
        WorkspaceCommand::Demo(_) => Ok(()),
    }
}

async fn find(session: &Session<'_>, reference: &str) -> Result<Workspace, Error> {
    match session.client.get(&[Workspace::PATH, reference]).await {
        Ok(found) => Ok(found),
        Err(error) => Err(suggest::reference(&session.client, error, reference).await),
    }
}

/// Posts a verb that takes only a reason.
async fn post<T: DeserializeOwned>(
    session: &Session<'_>,
    BecauseArguments { reference, reason }: BecauseArguments,
    verb: &str,
) -> Result<T, Error> {
    let path = [Workspace::PATH, reference.as_str(), verb];
    match session.client.post(&path, &Because { reason }).await {
        Ok(done) => Ok(done),
        Err(error) => Err(suggest::reference(&session.client, error, &reference).await),
    }
}

/// Shows the order, asks for its name, takes it down, and waits if that is wanted.
async fn teardown(session: &mut Session<'_>, arguments: TeardownArguments) -> Result<(), Error> {
    let TeardownArguments { reference, confirm, reason, dry_run, plan, break_glass, yes, wait } =
        arguments;
    if !dry_run {
        session.terminal.can_agree(yes)?;
        session.terminal.can_type(confirm.as_deref())?;
    }
    let Workspace { id, name, .. } = find(session, &reference).await?;
    let path = [Workspace::PATH, id.as_str(), "teardown"];
    if dry_run || !yes {
        let body = TeardownWorkspace {
            confirm: name.clone(),
            dry_run: true,
            ..TeardownWorkspace::default()
        };
        let order: TeardownOrder = session.client.post(&path, &body).await?;
        if dry_run {
            session.show(&order, |order, _| tree(order));
            return Ok(());
        }
        session.terminal.say(&tree(&order));
        // Whoever types its name has agreed.
        if confirm.is_some() {
            let question = format!("Take `{}` down with all its servers?", clean(&name));
            session.terminal.agree(false, &question)?;
        }
    }
    let harm = "All its servers are taken down, and what runs on them ends";
    let confirm = session.terminal.typed(confirm, &name, harm)?;
    let body = TeardownWorkspace { confirm, reason, dry_run: false, plan, break_glass };
    let begun: Deletion = session.client.post(&path, &body).await?;
    let shown = match wait.wait {
        true => until_done(session, &begun, wait.timeout).await?,
        false => begun,
    };
    session.show_details(&shown);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mk_group(wanted: u32, servers: u32, ready: u32) -> Group {
        Group {
            name: "workers".to_owned(),
            single: false,
            role: "Worker".to_owned(),
            wanted,
            min: 0,
            max: 5,
            servers,
            ready,
            hostname_pattern: "worker-{n}".to_owned(),
            blueprint: "local-node".to_owned(),
            depends_on: vec!["lb".to_owned()],
            delete_lock: false,
            dropped: false,
        }
    }

    fn mk_workspace(groups: Vec<Group>) -> Workspace {
        let at = "2026-01-31T12:00:00.000000Z".to_owned();
        Workspace {
            id: "0192f0c1".to_owned(),
            name: "cluster".to_owned(),
            project: Some("shop".to_owned()),
            project_id: "0192f0c0".to_owned(),
            groups,
            paused_at: None,
            blockers: Vec::new(),
            revision: 1,
            created_at: at.clone(),
            updated_at: at,
            deleted_at: None,
            deletion_id: None,
        }
    }

    #[test]
    fn the_state_says_first_what_people_did() {
        let mut workspace = mk_workspace(vec![mk_group(3, 3, 2)]);
        assert_eq!(state(&workspace), "converging");
        workspace.groups[0].ready = 3;
        assert_eq!(state(&workspace), "ready");
        workspace.groups[0].dropped = true;
        assert_eq!(state(&workspace), "converging");
        assert_eq!(counted(&workspace), "3 of 0 servers Ready");
        workspace.paused_at = Some(workspace.created_at.clone());
        assert_eq!(state(&workspace), "paused");
        workspace.deletion_id = Some("0192f0c2".to_owned());
        assert_eq!(state(&workspace), "leaving, paused");
        workspace.deleted_at = Some(workspace.created_at.clone());
        assert_eq!(state(&workspace), "deleted");
    }

    #[test]
    fn one_workspace_has_its_groups_below_its_facts() {
        let text = shown(&mk_workspace(vec![mk_group(3, 3, 2)]), Layout::default());
        let expected = "\
NAME     ROLE    WANTED  MIN  MAX  SERVERS  READY  LOCK  DEPENDS ON
workers  Worker  3       0    5    3        2      no    lb";
        assert!(text.ends_with(expected), "{text}");
    }
}
