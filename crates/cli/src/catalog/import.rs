//! `slipway blueprint import`: publishes a catalog of blueprint folders, entry
//! by entry.
//!
//! The import reads and checks everything before it sends anything: one invalid
//! entry prevents all. After that entries are independent. An import that was
//! cut short can be repeated: published entries are unchanged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use slipway_core::catalog::parameters;
use slipway_wire::catalog::{
    Blueprint, BlueprintVersion, CreateBlueprint, ParameterSchema, PublishVersion,
};
use slipway_wire::problem::FieldError;

use super::bundle::{self, Bundle};
use crate::client::Client;
use crate::error::Error;
use crate::exit::Exit;
use crate::kind::{Cells, Row, table};
use crate::output::or_dash;
use crate::session::Session;

/// The engine of a catalog of XRDs and Compositions.
const ENGINE: &str = "crossplane";
/// The folder in which a repository keeps its catalog.
const CATALOG: &str = "catalog";

/// The outcome of one entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    pub(crate) slug: String,
    pub(crate) version: Option<String>,
    pub(crate) outcome: Outcome,
    pub(crate) messages: Vec<String>,
    /// Its faults, if it is invalid.
    #[serde(skip)]
    faults: Vec<FieldError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Imported,
    Unchanged,
    /// `check` found no fault.
    Valid,
    /// The version exists with other content, and a version never changes.
    Drift,
    /// The slug belongs to a blueprint of another engine.
    Conflict,
    /// It cannot be published; nothing of the import was sent.
    Invalid,
    /// It is valid, but another entry is not.
    NotSent,
    /// The server refused it for another reason.
    Refused,
}

impl Outcome {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Imported => "imported",
            Self::Unchanged => "unchanged",
            Self::Valid => "valid",
            Self::Drift => "drift",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::NotSent => "not_sent",
            Self::Refused => "refused",
        }
    }

    pub(crate) const fn is_good(self) -> bool {
        matches!(self, Self::Imported | Self::Unchanged | Self::Valid)
    }
}

impl Row for Entry {
    fn cells(&self) -> Cells {
        vec![
            ("SLUG", self.slug.clone()),
            ("VERSION", or_dash(self.version.as_deref())),
            ("OUTCOME", self.outcome.as_str().to_owned()),
            ("WHY", why(&self.messages)),
        ]
    }
}

/// One message, or how many: the error has them all, one per line.
fn why(messages: &[String]) -> String {
    match messages {
        [] | [_] => messages.concat(),
        several => format!("{} faults, see below", several.len()),
    }
}

/// Checks the folders and sends nothing.
pub(super) fn check(session: &mut Session<'_>, folder: &Path) -> Result<(), Error> {
    let read = entries(folder)?.into_iter().map(|folder| checked(session, &folder, false));
    let ended: Vec<_> = read
        .map(|read| match read {
            Ok(bundle) => entry(&bundle, Outcome::Valid, None),
            Err(invalid) => invalid,
        })
        .collect();
    end(session, &ended, "blueprint_invalid", "are not valid")
}

pub(super) async fn run(
    session: &mut Session<'_>,
    folder: &Path,
    install_definitions: bool,
) -> Result<(), Error> {
    let folders = entries(folder)?;
    let read: Vec<_> =
        folders.iter().map(|folder| checked(session, folder, install_definitions)).collect();
    let mut ended = Vec::with_capacity(read.len());
    if read.iter().any(Result::is_err) {
        ended.extend(read.into_iter().map(|read| match read {
            Ok(bundle) => entry(&bundle, Outcome::NotSent, None),
            Err(invalid) => invalid,
        }));
    } else {
        for bundle in read.iter().flatten() {
            ended.push(import(&session.client, bundle).await?);
        }
    }
    end(session, &ended, "import_incomplete", "were not imported")
}

/// Shows the entries; fails with every fault if one is not good.
fn end(
    session: &mut Session<'_>,
    ended: &[Entry],
    code: &'static str,
    problem: &str,
) -> Result<(), Error> {
    session.show(&ended, |ended, width| table(ended, width));
    let bad: Vec<_> = ended.iter().filter(|entry| !entry.outcome.is_good()).collect();
    if bad.is_empty() {
        return Ok(());
    }
    let errors = bad.iter().flat_map(|entry| {
        let at = |fault: &FieldError| FieldError {
            field: format!("{}/{}", entry.slug, fault.field),
            message: in_short(fault),
            ..fault.clone()
        };
        entry.faults.iter().map(at)
    });
    Err(Error::Faults {
        code,
        message: format!("{} of {} blueprints {problem}", bad.len(), ended.len()),
        errors: errors.collect(),
        exit: Exit::Refused,
    })
}

/// The message without the field that most begin with.
fn in_short(fault: &FieldError) -> String {
    let field = format!("`{}` ", fault.field);
    fault.message.strip_prefix(&field).unwrap_or(&fault.message).to_owned()
}

/// The folders of the entries: this one, or its subfolders in the order of
/// their names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    if folder.join(bundle::METADATA).exists() {
        return Ok(vec![folder.to_owned()]);
    }
    let catalog = folder.join(CATALOG);
    let folder = if catalog.is_dir() { &catalog } else { folder };
    let unreadable =
        |error| Error::Usage(format!("cannot read the folder {}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !hidden {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(Error::Usage(format!("there is no blueprint in {}", folder.display())));
    }
    Ok(found)
}

fn checked(
    session: &Session<'_>,
    folder: &Path,
    install_definitions: bool,
) -> Result<Bundle, Entry> {
    let messages = |faults: &[FieldError]| {
        faults.iter().map(|fault| format!("{}: {}", fault.field, in_short(fault))).collect()
    };
    let (bundle, mut faults) = bundle::read_mended(folder);
    let unread: BTreeSet<String> = faults.iter().map(bundle::field_of).collect();
    let bundle = bundle.map(|mut bundle| {
        bundle.body.install_definitions = install_definitions;
        let more = (session.renderers.faults)(&bundle.slug, &bundle.body);
        // What another value stands in for is named already.
        faults.extend(more.into_iter().filter(|fault| !unread.contains(&bundle::field_of(fault))));
        bundle
    });
    let messages = messages(&faults);
    match bundle {
        Some(bundle) if faults.is_empty() => Ok(bundle),
        Some(bundle) if unread.is_empty() => {
            Err(Entry { messages, faults, ..entry(&bundle, Outcome::Invalid, None) })
        }
        _ => Err(Entry {
            slug: folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into()),
            version: None,
            outcome: Outcome::Invalid,
            messages,
            faults,
        }),
    }
}

fn entry(bundle: &Bundle, outcome: Outcome, message: Option<String>) -> Entry {
    Entry {
        slug: bundle.slug.clone(),
        version: Some(bundle.body.version.clone()),
        outcome,
        messages: message.into_iter().collect(),
        faults: Vec::new(),
    }
}

/// Imports one checked entry.
pub(crate) async fn import(client: &Client, bundle: &Bundle) -> Result<Entry, Error> {
    match publish(client, bundle).await {
        Ok((outcome, message)) => Ok(entry(bundle, outcome, message)),
        // Somebody else published it after our check.
        Err(Error::Problem(problem)) if problem.code == "blueprint_version_exists" => {
            Ok(entry(bundle, Outcome::Drift, Some(problem.message)))
        }
        Err(Error::Problem(problem)) if matches!(problem.status, 400 | 409 | 422) => {
            Ok(entry(bundle, Outcome::Refused, Some(problem.message)))
        }
        Err(error) => Err(error),
    }
}

async fn publish(client: &Client, bundle: &Bundle) -> Result<(Outcome, Option<String>), Error> {
    let (slug, body) = (bundle.slug.as_str(), &bundle.body);
    let there = existing::<Blueprint>(client, &["blueprints", slug]).await?;
    match &there {
        Some(blueprint) if blueprint.engine != ENGINE => {
            let message = format!("blueprint `{slug}` is of engine {}", blueprint.engine);
            return Ok((Outcome::Conflict, Some(message)));
        }
        Some(_) => {}
        None => {
            let new = CreateBlueprint {
                slug: slug.to_owned(),
                display_name: bundle.display_name.clone(),
                description: bundle.description.clone(),
                engine: ENGINE.to_owned(),
                protected: false,
            };
            let _: Blueprint = client.post(&["blueprints"], &new).await?;
        }
    }
    let path = ["blueprints", slug, "versions", body.version.as_str()];
    if let Some(published) = existing::<BlueprintVersion>(client, &path).await? {
        return Ok(match difference(&published, body) {
            None => (Outcome::Unchanged, None),
            Some(field) => {
                let message = format!(
                    "`{field}` differs from what is published as {}; publish a new version",
                    body.version
                );
                (Outcome::Drift, Some(message))
            }
        });
    }
    let _: BlueprintVersion = client.post(&path[..3], body).await?;
    Ok((Outcome::Imported, None))
}

/// What is at a path, if anything.
async fn existing<T: serde::de::DeserializeOwned>(
    client: &Client,
    path: &[&str],
) -> Result<Option<T>, Error> {
    match client.get(path).await {
        Ok(found) => Ok(Some(found)),
        Err(Error::Problem(problem)) if problem.status == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the parameters are those of the folder, in whichever words: the server fills in
/// what may be left out. A folder without any has those of its XRD, which is compared.
fn same_parameters(published: &BlueprintVersion, body: &PublishVersion) -> bool {
    let read = |schema: &ParameterSchema| {
        parameters::ParameterSchema::read(Value::Object(schema.0.clone())).ok()
    };
    let declared = body.parameter_schema.as_ref();
    declared.is_none_or(|declared| read(declared) == read(&published.parameter_schema))
}

/// The first field in which a folder differs from the published version.
fn difference(published: &BlueprintVersion, body: &PublishVersion) -> Option<&'static str> {
    let mesh_role = body.mesh_role.as_deref().unwrap_or("node");
    [
        ("xrd", published.xrd == body.xrd),
        ("composition", published.composition == body.composition),
        ("parameter_schema", same_parameters(published, body)),
        ("injection_strategy", published.injection_strategy == body.injection_strategy),
        ("mesh_role", published.mesh_role == mesh_role),
        ("provider_kinds", published.provider_kinds == body.provider_kinds),
        ("surge", published.surge == body.surge),
        // Without the flag, the published setting is accepted.
        ("install_definitions", published.install_definitions || !body.install_definitions),
    ]
    .into_iter()
    .find_map(|(field, same)| (!same).then_some(field))
}
