//! Objects and their owners, as an apply reads them: a few reads for all documents of a kind.

use std::collections::BTreeMap;

use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::{Fields, Owner};
use slipway_core::files::write::DeclaredObject;
use slipway_core::ids::ProjectId;
use uuid::Uuid;

use super::kind::{self, Applier, Live};
use crate::{Context, Error};

/// What is known of the objects of one kind.
#[derive(Debug, Default)]
pub(super) struct Known {
    live: BTreeMap<Address, Live>,
    rows: BTreeMap<String, Vec<DeclaredObject>>,
    projects: BTreeMap<String, ProjectId>,
}

impl Known {
    pub(super) async fn read(
        by: Applier<'_>,
        kind: DocumentKind,
        wanted: &[Address],
    ) -> Result<Self, Error> {
        // The owners first: an object that is written in between has a newer revision than
        // the one that was read, or is found with its owner by the next attempt.
        let paths: Vec<String> = wanted.iter().map(Address::path).collect();
        let mut declared: BTreeMap<String, Vec<DeclaredObject>> = BTreeMap::new();
        for row in by.context.stores.files.declared_at(kind, &paths).await? {
            declared.entry(row.address.path()).or_default().push(row);
        }
        let live = kind::of(kind).live(by, wanted).await?;
        let live = live.into_iter().map(|live| (live.address.clone(), live)).collect();
        let projects = by.projects(wanted).await?;
        Ok(Self { live, rows: declared, projects })
    }

    pub(super) fn live(&self, address: &Address) -> Option<&Live> {
        self.live.get(address)
    }

    /// The rows about this very object: one that was deleted and made again is another.
    pub(super) fn rows(&self, address: &Address) -> impl Iterator<Item = &DeclaredObject> {
        let subject = self.live(address).map(|live| live.subject_id);
        let rows = self.rows.get(&address.path()).into_iter().flatten();
        rows.filter(move |row| Some(row.subject_id) == subject)
    }

    pub(super) fn mine(&self, address: &Address, source: &str) -> Option<&Fields> {
        self.rows(address).find(|row| row.source == source).map(|row| &row.fields)
    }

    pub(super) fn others(&self, address: &Address, source: &str) -> Vec<Owner> {
        let others = self.rows(address).filter(|row| row.source != source);
        others.map(|row| Owner { source: row.source.clone(), fields: row.fields.clone() }).collect()
    }

    /// The project that an object is in, if it exists.
    pub(super) fn project(&self, address: &Address) -> Option<ProjectId> {
        address.home().and_then(|name| self.projects.get(name).copied())
    }

    /// Whether the project exists that an object is in, if it is in one.
    pub(super) fn has_project(&self, address: &Address) -> bool {
        address.home().is_none() || self.project(address).is_some()
    }

    /// The row of an object after an apply. A new object gets its id from its creation.
    pub(super) fn row(
        &self,
        context: &Context,
        source: &str,
        address: &Address,
        fields: Fields,
        origin: &str,
    ) -> DeclaredObject {
        let project = self.project(address);
        let own = project.filter(|_| address.kind.is_of_project());
        let made = own.map_or_else(Uuid::nil, |id| id.as_uuid());
        DeclaredObject {
            id: context.entropy.uuid(),
            source: source.to_owned(),
            address: address.clone(),
            subject_id: self.live(address).map_or(made, |live| live.subject_id),
            project_id: project.or_else(|| self.live(address).and_then(|live| live.project_id)),
            fields,
            origin: origin.to_owned(),
        }
    }
}
