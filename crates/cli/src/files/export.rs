//! `slipway export`: a project as a folder that `apply` takes. Secrets are never part of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;
use slipway_wire::access::ApiKey;
use slipway_wire::broker::Resource;
use slipway_wire::catalog::{CredentialAssignment, Project};
use slipway_wire::files::{Document, ObjectReference};
use slipway_wire::placement::ClusterAssignment;
use slipway_wire::topology::Server;

use super::get::documents;
use crate::client::Listing;
use crate::error::Error;
use crate::exit::Exit;
use crate::fleet::find::is_id;
use crate::session::Session;

/// Objects of one request.
const BATCH: usize = 200;

#[derive(Debug, Clone, Args)]
pub struct ExportArguments {
    /// The project
    pub project: String,
    /// The folder to write; new, or empty
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

pub(crate) const EXAMPLES: &[&str] = &["slipway export shop shop"];

pub(crate) async fn run(
    session: &mut Session<'_>,
    arguments: ExportArguments,
) -> Result<(), Error> {
    let folder = &arguments.folder;
    let is_used = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_used {
        let problem = format!("`{}` is not empty; choose another folder", folder.display());
        return Err(Error::Usage(problem));
    }
    let project: Project = session.client.get(&["projects", &arguments.project]).await?;
    let objects = objects(session, &project.name).await?;
    let mut written = 0;
    for batch in objects.chunks(BATCH) {
        for document in documents(session, batch.to_vec()).await? {
            write(folder, &document)?;
            written += 1;
        }
    }
    let settings = format!("source: {}\n", project.name);
    fs::write(folder.join(".slipway.yaml"), settings).map_err(cannot_write(folder))?;
    session.terminal.say(&format!("{written} documents in {}", folder.display()));
    Ok(())
}

/// Everything that is in a project.
async fn objects(session: &Session<'_>, project: &str) -> Result<Vec<ObjectReference>, Error> {
    let reference = |kind: &str, name: &str| ObjectReference {
        kind: kind.to_owned(),
        project: None,
        cloud: None,
        name: name.to_owned(),
    };
    let within = |kind: &str, name: &str| ObjectReference {
        project: Some(project.to_owned()),
        ..reference(kind, name)
    };
    let client = &session.client;
    let mut objects = vec![reference("Project", project)];
    match client.get::<ClusterAssignment>(&["projects", project, "cluster"]).await {
        Ok(_) => objects.push(reference("Placement", project)),
        Err(error) if error.exit() == Exit::NotFound => {}
        Err(error) => return Err(error),
    }
    let path = ["projects", project, "credentials"];
    let assigned = client.list::<CredentialAssignment>(&path, Listing::default()).await?;
    objects.extend(assigned.items.into_iter().map(|one| ObjectReference {
        cloud: one.credential.cloud.clone(),
        ..within("Assignment", &one.credential.name)
    }));
    match client.list::<ApiKey>(&["keys"], Listing::default()).await {
        Ok(keys) => {
            let own = keys.items.iter().filter(|key| key.project.as_deref() == Some(project));
            // Those of agents and generators come with them.
            let of_people = own.filter(|key| !is_of_program(key));
            let usable = of_people.filter(|key| key.state == "usable");
            objects.extend(usable.map(|key| within("Key", &key.name)));
        }
        // Only admins see keys.
        Err(error) if error.exit() == Exit::Unauthenticated => {}
        Err(error) => return Err(error),
    }
    let of_project = || Listing::default().with("project", Some(project));
    // The servers of a workspace come with it.
    let servers = client.list::<Server>(&["servers"], of_project()).await?.items;
    let servers: BTreeSet<String> = servers.into_iter().map(|one| one.id).collect();
    let resources = client.list::<Resource>(&["resources"], of_project()).await?.items;
    let own = resources.iter().filter(|one| !servers.contains(&one.id));
    objects.extend(own.map(|one| within("Resource", &one.handle)));
    for (kind, path) in LISTED {
        let found = client.list::<Value>(&[path], of_project()).await?.items;
        // Versions of a template are one document.
        let names: BTreeSet<String> =
            found.iter().filter_map(|one| document_name(kind, one)).collect();
        objects.extend(names.iter().map(|name| within(kind, name)));
    }
    Ok(objects)
}

/// The other kinds of a project, and their lists.
const LISTED: [(&str, &str); 6] = [
    ("Generator", "generators"),
    ("Template", "templates"),
    ("Stack", "stacks"),
    ("Agent", "agents"),
    ("Tenant", "tenants"),
    ("Workspace", "workspaces"),
];

/// Such a key is named after the id of its agent or generator.
fn is_of_program(key: &ApiKey) -> bool {
    let of = |owner: &str| key.name.strip_prefix(owner)?.strip_prefix('-').map(is_id);
    ["agent", "generator"].contains(&&*key.owner) && of(&key.owner) == Some(true)
}

fn document_name(kind: &str, one: &Value) -> Option<String> {
    let name = one["name"].as_str()?;
    match kind {
        "Agent" => Some(format!("{name}@{}", one["cluster_name"].as_str()?)),
        _ => Some(name.to_owned()),
    }
}

/// The name of a file: names of Fleet may have anything in them.
fn file_name(name: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || "-_.@".contains(c);
    let name: String = name.chars().map(|c| if kept(c) { c } else { '_' }).collect();
    name.trim_start_matches('.').to_owned()
}

/// `resources/web-1.yaml`; what there is once has a file beside the folders.
fn write(folder: &Path, document: &Document) -> Result<(), Error> {
    let kind = document.kind.to_lowercase();
    let path = match kind.as_str() {
        "project" | "placement" => folder.join(format!("{kind}.yaml")),
        _ => folder
            .join(format!("{kind}s"))
            .join(format!("{}.yaml", file_name(&document.metadata.name))),
    };
    let text = serde_yaml_ng::to_string(document)
        .map_err(|error| Error::Usage(format!("a document cannot be written: {error}")))?;
    fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(cannot_write(folder))?;
    fs::write(&path, text).map_err(cannot_write(&path))
}

fn cannot_write(path: &Path) -> impl Fn(std::io::Error) -> Error + use<> {
    let path = path.display().to_string();
    move |error| Error::Usage(format!("`{path}` cannot be written: {error}"))
}
