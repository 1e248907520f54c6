//! `label` and `annotate` of agents, stacks and templates. Without a flag they show what
//! there is.

use std::collections::BTreeMap;

use clap::Args;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::find::{FleetKind, FleetTarget};
use crate::arguments::parse_pair;
use crate::client::Client;
use crate::error::Error;
use crate::kind::{Cells, Row};
use crate::output::pairs;
use crate::session::Session;
use crate::terminal::clean;

#[derive(Debug, Clone, Args)]
pub struct LabelArguments {
    #[command(flatten)]
    pub target: FleetTarget,
    /// Add a label, one word such as prod; what has it already keeps it
    #[arg(long, value_name = "LABEL")]
    pub add: Vec<String>,
    /// Take a label away; an agent that has the stack by it alone is told to remove it
    #[arg(long, value_name = "LABEL")]
    pub remove: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub struct AnnotateArguments {
    #[command(flatten)]
    pub target: FleetTarget,
    /// Add an annotation; another value of the same key is refused
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub add: Vec<(String, String)>,
    /// Take an annotation away; an agent that has the stack by it alone is told to remove it
    #[arg(long, value_name = "KEY")]
    pub remove: Vec<String>,
}

/// A kind that carries them, and the bodies that its routes take.
pub(crate) trait Tagged: FleetKind {
    fn label_body(&self, label: &str) -> Value {
        json!(label)
    }

    fn annotation_body(&self, key: &str, value: &str) -> Value;
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LabelRow {
    pub(crate) label: String,
}

impl Row for LabelRow {
    fn cells(&self) -> Cells {
        vec![("LABEL", self.label.clone())]
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AnnotationRow {
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Row for AnnotationRow {
    fn cells(&self) -> Cells {
        vec![("KEY", self.key.clone()), ("VALUE", self.value.clone())]
    }
}

pub(crate) async fn label<K: Tagged>(
    session: &mut Session<'_>,
    LabelArguments { target, add, remove }: LabelArguments,
) -> Result<(), Error> {
    let found: K = target.find(&session.client).await?;
    let path = [K::PATH, found.id(), "labels"];
    for label in &add {
        let added = session.client.post::<Value>(&path, &found.label_body(label)).await;
        unless_there(session, added, &format!("label `{}`", clean(label)))?;
    }
    for label in &remove {
        session.client.silent(Method::DELETE, &[path[0], path[1], path[2], label]).await?;
    }
    let labels: Vec<LabelRow> = session.client.get(&path).await?;
    session.show_all(&labels, "labels");
    Ok(())
}

pub(crate) async fn annotate<K: Tagged>(
    session: &mut Session<'_>,
    AnnotateArguments { target, add, remove }: AnnotateArguments,
) -> Result<(), Error> {
    let found: K = target.find(&session.client).await?;
    let path = [K::PATH, found.id(), "annotations"];
    if !add.is_empty() {
        let there: Vec<AnnotationRow> = session.client.get(&path).await?;
        for (key, value) in &add {
            let same = |one: &AnnotationRow| one.key == *key && one.value == *value;
            if there.iter().any(same) {
                continue;
            }
            let body = found.annotation_body(key, value);
            session.client.post::<Value>(&path, &body).await?;
        }
    }
    for key in &remove {
        session.client.silent(Method::DELETE, &[path[0], path[1], path[2], key]).await?;
    }
    let annotations: Vec<AnnotationRow> = session.client.get(&path).await?;
    session.show_all(&annotations, "annotations");
    Ok(())
}

/// What is there already is as it should be.
pub(crate) fn unless_there<T>(
    session: &mut Session<'_>,
    added: Result<T, Error>,
    what: &str,
) -> Result<(), Error> {
    match added {
        Err(Error::Problem(problem)) if problem.code == "entry_exists" => {
            session.terminal.say(&format!("nothing to do: {what} is there already"));
            Ok(())
        }
        added => added.map(drop),
    }
}

/// The labels and annotations of something, beside its other facts.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Tags {
    pub(crate) labels: Vec<String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

impl Tags {
    pub(crate) async fn read(client: &Client, path: &str, id: &str) -> Result<Self, Error> {
        let labels: Vec<LabelRow> = client.get(&[path, id, "labels"]).await?;
        let annotations: Vec<AnnotationRow> = client.get(&[path, id, "annotations"]).await?;
        Ok(Self {
            labels: labels.into_iter().map(|one| one.label).collect(),
            annotations: annotations.into_iter().map(|one| (one.key, one.value)).collect(),
        })
    }

    pub(crate) fn facts(&self) -> [(&'static str, Option<String>); 2] {
        [("labels", Some(self.labels.join(", "))), ("annotations", Some(pairs(&self.annotations)))]
    }
}
