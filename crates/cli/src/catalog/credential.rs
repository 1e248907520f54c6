//! `slipway credential …`: where credentials are stored, and which projects may
//! use them.

use clap::{Args, Subcommand};
use reqwest::Method;
use slipway_core::ids::CloudCredentialId;
use slipway_core::operations::reference::ids_from;
use slipway_wire::catalog::{CreateCredential, Credential, CredentialAssignment, UpdateCredential};
use slipway_wire::deletion::Deletion;

use crate::arguments::{DeletedListArguments, DeletionArguments};
use crate::client::Listing;
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{name_and_id, optional_time, or_dash, time};
use crate::session::Session;
use crate::suggest;

#[derive(Debug, Clone, Subcommand)]
pub enum CredentialCommand {
    /// Name the path of a credential; the secret itself stays in the vault
    Create {
        /// Lowercase letters, digits and hyphens; unique within the cloud
        name: String,
        /// Cloud: name, id or beginning of the id
        #[arg(long)]
        cloud: String,
        /// Mount of the KV store
        #[arg(long)]
        kv_mount: Option<String>,
        /// Path in it; derived from the ids if not given
        #[arg(long)]
        kv_path: Option<String>,
    },
    /// List credentials
    List {
        /// Only of this cloud (name, id or beginning of the id)
        #[arg(long)]
        cloud: Option<String>,
        /// Only those that this project may use (name, id or beginning of the id)
        #[arg(long, conflicts_with_all = ["cloud", "show_deleted", "watch"])]
        project: Option<String>,
        #[command(flatten)]
        list: DeletedListArguments,
    },
    /// Show one credential
    Get(CredentialArguments),
    /// Change the path of a credential
    Update {
        #[command(flatten)]
        target: CredentialArguments,
        /// Mount of the KV store
        #[arg(long, required_unless_present = "kv_path")]
        kv_mount: Option<String>,
        /// Path in it
        #[arg(long)]
        kv_path: Option<String>,
    },
    /// Delete a credential that no project may use
    Delete {
        #[command(flatten)]
        target: CredentialArguments,
        #[command(flatten)]
        deletion: DeletionArguments,
    },
    /// Let a project use a credential
    Assign {
        #[command(flatten)]
        target: CredentialArguments,
        /// Project: name, id or beginning of the id
        #[arg(long)]
        project: String,
    },
    /// No longer let a project use a credential
    Unassign {
        #[command(flatten)]
        target: CredentialArguments,
        /// Project: name, id or beginning of the id
        #[arg(long)]
        project: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Clone, Args)]
pub struct CredentialArguments {
    /// Name or id of the credential
    #[arg(value_name = "CREDENTIAL")]
    pub credential: String,
    /// The cloud of the name (name, id or beginning of the id)
    #[arg(long)]
    pub cloud: Option<String>,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway credential create deploy --cloud eu --kv-path clouds/eu/deploy",
    "slipway credential list --project shop",
    "slipway credential get deploy --cloud eu",
    "slipway credential update deploy --kv-path clouds/eu/deploy-2",
    "slipway credential delete deploy --cloud eu --yes",
    "slipway credential assign deploy --project shop",
    "slipway credential unassign deploy --project shop --yes",
];

impl Kind for Credential {
    const PATH: &'static str = "credentials";
}

impl Row for Credential {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("CLOUD", self.cloud.as_ref().unwrap_or(&self.cloud_id).clone()),
            ("AGE", self.created_at.clone()),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
            ("PATH", format!("{}/{}", self.kv_mount, self.kv_path)),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("CLOUD ID", self.cloud_id.clone()), ("ID", self.id.clone())]
    }
}

impl Detail for Credential {
    const NOUN: &'static str = "credential";

    fn facts(&self) -> Facts {
        vec![
            ("name", Some(self.name.clone())),
            ("id", Some(self.id.clone())),
            ("cloud", Some(name_and_id(self.cloud.as_deref(), &self.cloud_id))),
            ("mount", Some(self.kv_mount.clone())),
            ("path", Some(self.kv_path.clone())),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
            ("deletion", self.deletion_id.clone()),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

impl Row for CredentialAssignment {
    fn cells(&self) -> Cells {
        self.credential.cells()
    }

    fn wide(&self) -> Cells {
        self.credential.wide()
    }
}

pub(crate) async fn run(
    session: &mut Session<'_>,
    command: CredentialCommand,
) -> Result<(), Error> {
    match command {
        CredentialCommand::Create { name, cloud, kv_mount, kv_path } => {
            let body = CreateCredential { cloud, name, kv_mount, kv_path };
            session.create::<Credential>(&body).await
        }
        CredentialCommand::List { project: Some(project), list, .. } => {
            list_assigned(session, &project, list.page.into()).await
        }
        CredentialCommand::List { cloud, list, .. } => {
            session.list::<Credential>(Listing::from(list).with("cloud", cloud)).await
        }
        CredentialCommand::Get(target) => {
            let credential = find(session, &target).await?;
            session.show_details(&credential);
            Ok(())
        }
        CredentialCommand::Update { target, kv_mount, kv_path } => {
            let found = find(session, &target).await?;
            session.update::<Credential>(&found.id, &UpdateCredential { kv_mount, kv_path }).await
        }
        CredentialCommand::Delete { target, deletion } => {
            session.terminal.can_agree(deletion.yes)?;
            let found = find(session, &target).await;
            let Some(found) = session.unless_ignored(found, deletion.ignore_not_found)? else {
                return Ok(());
            };
            let question = format!("Delete credential `{}` ({})?", found.name, found.id);
            let mut query = deletion.query();
            let target = ("credential", found.id.as_str());
            session.agree_to_delete(target, &question, &deletion, &mut query).await?;
            let path = ["credentials", &found.id];
            let deletion: Deletion = session.client.delete(&path, &query).await?;
            session.show_details(&deletion);
            Ok(())
        }
        CredentialCommand::Assign { target, project } => {
            let found = find(session, &target).await?;
            change(session, Method::PUT, &project, &found).await
        }
        CredentialCommand::Unassign { target, project, yes } => {
            session.terminal.can_agree(yes)?;
            let found = find(session, &target).await?;
            let question = format!("Take credential `{}` from project `{project}`?", found.name);
            session.terminal.agree(yes, &question)?;
            change(session, Method::DELETE, &project, &found).await
        }
    }
}

async fn list_assigned(
    session: &mut Session<'_>,
    project: &str,
    wanted: Listing,
) -> Result<(), Error> {
    let path = ["projects", project, "credentials"];
    session.list_at::<CredentialAssignment>(&path, wanted).await
}

/// Assigns or withdraws, then shows the credentials that the project may use.
async fn change(
    session: &mut Session<'_>,
    method: Method,
    project: &str,
    credential: &Credential,
) -> Result<(), Error> {
    let path = ["projects", project, "credentials", &credential.id];
    session.client.silent(method, &path).await?;
    list_assigned(session, project, Listing::default()).await
}

/// An id is unique; a name is unique only within a cloud.
async fn find(session: &Session<'_>, target: &CredentialArguments) -> Result<Credential, Error> {
    let name = target.credential.as_str();
    if name.parse::<CloudCredentialId>().is_ok() {
        return session.client.get(&["credentials", name]).await;
    }
    let wanted = Listing::default().with("cloud", target.cloud.as_deref()).with("name", Some(name));
    let mut found: Vec<Credential> = session.client.list(&["credentials"], wanted).await?.items;
    if found.len() > 1 {
        return Err(Error::Usage(format!(
            "`{name}` names a credential in {} clouds; choose with --cloud",
            found.len()
        )));
    }
    if let Some(found) = found.pop() {
        return Ok(found);
    }
    // It may be the beginning of an id.
    if ids_from(name).is_some() {
        return session.client.get(&["credentials", name]).await;
    }
    let meant = suggest::near(&session.client, ("credentials", "name"), None, name).await;
    Err(Error::NotFound(format!("there is no credential `{name}`{meant}")))
}
