//! Which thing of Fleet is meant: a name within a project, or an id.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::Value;
use slipway_core::ids::StackId;
use slipway_wire::fleet::{Agent, Generator, Stack, StackTemplate};

use crate::broker::target::Gone;
use crate::client::{Client, Listing};
use crate::complete;
use crate::error::Error;
use crate::kind::Kind;
use crate::suggest;

#[derive(Debug, Clone, Args)]
pub struct FleetTarget {
    /// Its name or its id; an agent also as NAME@CLUSTER, a template as NAME@VERSION
    #[arg(value_name = "NAME", add = complete::names(""))]
    pub name: String,
    #[command(flatten)]
    pub within: Within,
}

#[derive(Debug, Clone, Default, Args)]
pub struct Within {
    /// The project of names (name or id); if not given, that of the context, or any
    #[arg(long, add = complete::names("project"))]
    pub project: Option<String>,
}

/// One of the four kinds, whose names are unique within a project only.
pub(crate) trait FleetKind: Kind {
    fn id(&self) -> &str;
    fn name(&self) -> &str;

    /// What tells it from others of its name in its project, written after an `@`.
    fn qualifier(&self) -> Option<String> {
        None
    }

    /// Those that a name alone means.
    fn meant(found: Vec<Self>) -> Vec<Self> {
        found
    }
}

/// An id is used as it is: whatever is wrong with it, the server says.
pub(crate) fn is_id(text: &str) -> bool {
    text.parse::<StackId>().is_ok()
}

impl FleetTarget {
    pub(crate) async fn find<K: FleetKind>(&self, client: &Client) -> Result<K, Error> {
        find(client, &self.name, &self.within, Gone::Refused).await
    }
}

/// The one that is meant. With [`Gone::Allowed`] the newest of those that are deleted, if
/// none is live.
pub(crate) async fn find<K: FleetKind>(
    client: &Client,
    given: &str,
    within: &Within,
    gone: Gone,
) -> Result<K, Error> {
    if is_id(given) {
        let wanted = Listing::default().show_deleted(gone == Gone::Allowed);
        return client.get_where(&[K::PATH, given], wanted).await;
    }
    let project = within.project.as_deref().or(client.project());
    let mut found = named::<K>(client, given, project, false).await?;
    if found.is_empty() && gone == Gone::Allowed {
        // Lists are ordered by id, and ids by creation.
        found.extend(named::<K>(client, given, project, true).await?.pop());
    }
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(last), false) => {
            found.push(last);
            Err(several(given, &found))
        }
        (None, _) => {
            let within = project.map(|project| format!(" in project `{project}`"));
            let meant = suggest::near(client, (K::PATH, "name"), project, given).await;
            let (noun, within) = (K::NOUN, within.unwrap_or_default());
            Err(Error::NotFound(format!("there is no {noun} `{given}`{within}{meant}")))
        }
    }
}

/// The id of something of this kind; `None` for a kind that is not of Fleet.
pub(crate) async fn find_id(
    client: &Client,
    kind: &str,
    given: &str,
    within: &Within,
    gone: Gone,
) -> Option<Result<String, Error>> {
    async fn id<K: FleetKind>(
        found: impl Future<Output = Result<K, Error>>,
    ) -> Result<String, Error> {
        found.await.map(|found| found.id().to_owned())
    }
    Some(match kind {
        "generator" => id(find::<Generator>(client, given, within, gone)).await,
        "stack" => id(find::<Stack>(client, given, within, gone)).await,
        "template" => id(find::<StackTemplate>(client, given, within, gone)).await,
        "agent" => id(find::<Agent>(client, given, within, gone)).await,
        _ => return None,
    })
}

/// Those with this name, or with the name and what follows the last `@`.
async fn named<K: FleetKind>(
    client: &Client,
    given: &str,
    project: Option<&str>,
    show_deleted: bool,
) -> Result<Vec<K>, Error> {
    let list = async |name: &str| {
        let wanted = Listing::default().with("project", project).with("name", Some(name));
        client.list::<K>(&[K::PATH], wanted.show_deleted(show_deleted)).await
    };
    let found = list(given).await?.items;
    if !found.is_empty() {
        return Ok(K::meant(found));
    }
    let Some((name, qualifier)) = given.rsplit_once('@').filter(|(name, _)| !name.is_empty())
    else {
        return Ok(found);
    };
    let mut found = list(name).await?.items;
    found.retain(|one| one.qualifier().as_deref() == Some(qualifier));
    Ok(found)
}

fn several<K: FleetKind>(given: &str, found: &[K]) -> Error {
    let mut forms: Vec<_> = found
        .iter()
        .filter_map(|one| Some(format!("`{}@{}`", one.name(), one.qualifier()?)))
        .collect();
    forms.sort_unstable();
    let all = forms.len();
    forms.dedup();
    let choose = match forms.len() == all && all == found.len() {
        true => format!("write {}", forms.join(" or ")),
        false => "choose with --project".to_owned(),
    };
    Error::Usage(format!("`{given}` names {} {}; {choose}", found.len(), K::PATH))
}

/// Names by id, of everything in a list. Whoever may not list them gets ids.
pub(crate) async fn names(client: &Client, path: &str) -> BTreeMap<String, String> {
    let wanted = Listing::default().show_deleted(true);
    let listed = client.list::<Value>(&[path], wanted).await;
    let items = listed.map(|listed| listed.items).unwrap_or_default();
    let name =
        |item: &Value| Some((item["id"].as_str()?.to_owned(), item["name"].as_str()?.to_owned()));
    items.iter().filter_map(name).collect()
}

/// The name of an id, or the id of what has none.
pub(crate) fn name_of(names: &BTreeMap<String, String>, id: &str) -> String {
    names.get(id).map_or_else(|| id.to_owned(), String::clone)
}
