//! Objects as documents, and what sources declared.

use std::collections::BTreeMap;

use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::files::document::{Address, DocumentKind, check_source};
use slipway_core::files::write::DeclaredObject;
use uuid::Uuid;

use super::apply::MOST_DOCUMENTS;
use super::faults;
use super::kind::{self, Applier, Live};
use super::port::{Declared, Source};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::broker::declare::DEFAULT_PROJECT;
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::{Context, Error};

/// The project of a document that names none.
pub async fn usual_project(context: &Context, caller: &Caller) -> Result<String, Error> {
    let Some(own) = caller.project else { return Ok(DEFAULT_PROJECT.to_owned()) };
    let names = context.stores.access.names(&[own.as_uuid()]).await?;
    Ok(names.get(&own.as_uuid()).cloned().unwrap_or_else(|| DEFAULT_PROJECT.to_owned()))
}

/// These objects; `None` for one that does not exist or that the caller cannot see.
pub async fn documents(
    context: &Context,
    caller: &Caller,
    wanted: &[Address],
) -> Result<Vec<Option<Live>>, Error> {
    authorise(caller, Operation::DocumentRead)?;
    if wanted.len() > MOST_DOCUMENTS {
        let problem =
            format!("must have at most {MOST_DOCUMENTS}; send the rest in another request");
        return Err(Refusal::invalid("objects", problem).into());
    }
    let mut found: BTreeMap<Address, Live> = BTreeMap::new();
    for kind in DocumentKind::ALL {
        let of_kind = wanted.iter().filter(|address| address.kind == *kind);
        let of_kind: Vec<Address> = of_kind.cloned().collect();
        if !of_kind.is_empty() {
            let (kind, by) = (kind::of(*kind), Applier { context, caller });
            for mut live in kind.live(by, &of_kind).await? {
                kind.show(by, &mut live).await?;
                found.insert(live.address.clone(), live);
            }
        }
    }
    Ok(wanted.iter().map(|address| found.get(address).cloned()).collect())
}

/// An object that a source declared.
#[derive(Debug, Clone)]
pub struct DeclaredLine {
    pub declared: Declared,
    /// The other sources that declare it too.
    pub shared_with: Vec<String>,
}

/// A page of what a source declared and what still exists.
pub async fn declared(
    context: &Context,
    caller: &Caller,
    source: &str,
    page: Page<Uuid>,
) -> Result<Listed<DeclaredLine>, Error> {
    authorise(caller, Operation::SourceRead)?;
    check_source(source)?;
    let rows = context.stores.files.declared_page(source, caller.project, page).await?;
    if page.after.is_none() && rows.items.is_empty() && rows.quarantined.is_empty() {
        // One that has nothing but faults is known.
        if context.stores.files.faults_of(source, caller.project).await?.is_empty() {
            return Err(faults::unknown(source).into());
        }
    }
    let mut items = Vec::with_capacity(rows.items.len());
    for kind in DocumentKind::ALL {
        let of_kind: Vec<&Declared> =
            rows.items.iter().filter(|(row, _)| row.address.kind == *kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let wanted: Vec<Address> = of_kind.iter().map(|(row, _)| row.address.clone()).collect();
        let live = match kind::of(*kind).live(Applier { context, caller }, &wanted).await {
            // A kind that the caller may not read is not in its list.
            Err(error) if error.kind() == ErrorKind::Forbidden => continue,
            live => live?,
        };
        let lives = |row: &DeclaredObject| {
            live.iter().any(|live| {
                live.address == row.address && live.subject_id == row.subject_id && !live.leaving
            })
        };
        let paths: Vec<String> = wanted.iter().map(Address::path).collect();
        let all = context.stores.files.declared_at(*kind, &paths).await?;
        for declared in of_kind.into_iter().filter(|(row, _)| lives(row)) {
            let row = &declared.0;
            let other = |one: &&DeclaredObject| {
                one.subject_id == row.subject_id
                    && one.address == row.address
                    && one.source != source
                    && !one.fields.is_empty()
            };
            let shared_with = all.iter().filter(other).map(|one| one.source.clone()).collect();
            items.push(DeclaredLine { declared: declared.clone(), shared_with });
        }
    }
    items.sort_by_key(|line| line.declared.0.id);
    Ok(Listed { items, quarantined: rows.quarantined, next: rows.next })
}

/// The sources of what the caller reaches, by name.
pub async fn sources(
    context: &Context,
    caller: &Caller,
    after: Option<&str>,
    limit: u32,
) -> Result<Listed<Source, String>, Error> {
    authorise(caller, Operation::SourceRead)?;
    let found = context.stores.files.source_page(caller.project, after, limit).await?;
    Ok(Listed::complete(found, limit, |source| source.name.clone()))
}
