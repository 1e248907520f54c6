//! Makes objects agree with documents.
//!
//! *Expected flow.* Documents go by kind, in the order of [`DocumentKind::ALL`]. For each
//! kind a few reads find the objects and their owners; a pure rule
//! ([`slipway_core::files::fields::plan`]) says what a document changes; the use-case of the
//! kind makes the change, and the same transaction records which fields the source wrote.
//!
//! *Guarantees.* Each object is written whole or not at all, with who declared it: a refusal or
//! a crash leaves every other object as it is, and applying again does the rest. The new
//! resources of a request share one transaction, in which each is decided and refused by itself
//! ([`declare::declare_all`]); every other object has a transaction of its own. A change names
//! the revision that was read, so a change that came in between is read again and never
//! overwritten unseen. What agrees already is not written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt as _, stream};
use serde_json::Map;
use slipway_core::commit::Commit;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::files::document::{Address, DocumentKind, check_source};
use slipway_core::files::fields::{Change, Outcome, plan};
use slipway_core::files::write::{self, DeclaredObject};
use slipway_core::secret::Secret;

use super::declared::Known;
use super::kind::{self, Applier, Desired, Document, Live};
use super::kinds::resource::declaration;
use super::port::Beside;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::broker::declare;
use crate::topology::plan::Plan;
use crate::{Context, Error};

/// The most documents of one request.
pub const MOST_DOCUMENTS: usize = 200;

/// Objects of one kind that are in work at once.
const AT_ONCE: usize = 8;

/// How often an object is read again that somebody else wrote meanwhile.
const MOST_TRIES: u32 = 4;

/// A document as received: what it is about, if that can be told, and what it says, if it
/// can be read.
#[derive(Debug)]
pub struct Draft {
    pub address: Option<Address>,
    pub document: Result<Document, Refusal>,
}

/// How a request is applied.
#[derive(Debug, Clone)]
pub struct Options {
    pub source: String,
    /// Decide, and write nothing.
    pub dry_run: bool,
    /// Take fields from other sources.
    pub force: bool,
}

/// What became of a document.
#[derive(Debug)]
pub enum Verdict {
    Created,
    Changed,
    Unchanged,
    Refused(Refusal),
}

#[derive(Debug)]
pub struct Applied {
    pub verdict: Verdict,
    pub changes: Vec<Change>,
    /// Of a new key, this once.
    pub secret: Option<Secret>,
    /// Of a dry run: what it would do beside.
    pub plan: Option<Plan>,
}

impl Applied {
    fn refused(refusal: Refusal) -> Self {
        Self { verdict: Verdict::Refused(refusal), changes: Vec::new(), secret: None, plan: None }
    }
}

/// Applies documents; the answer has one entry for each, in their order.
pub async fn apply(
    context: &Context,
    caller: &Caller,
    options: &Options,
    drafts: Vec<Draft>,
) -> Result<Vec<Applied>, Error> {
    authorise(caller, Operation::FilesApply)?;
    check_source(&options.source)?;
    if drafts.len() > MOST_DOCUMENTS {
        let problem =
            format!("must have at most {MOST_DOCUMENTS}; send the rest in another request");
        return Err(Refusal::invalid("documents", problem).into());
    }
    let mut run = Run::new(drafts);
    for kind in DocumentKind::ALL {
        run.apply_kind(context, caller, options, *kind).await?;
    }
    Ok(run.applied.into_iter().map(Option::unwrap_or_default).collect())
}

impl Default for Applied {
    fn default() -> Self {
        Self::refused(Refusal::new(ErrorKind::Internal, "the document was not applied"))
    }
}

/// A request on its way.
struct Run {
    documents: Vec<Option<Arc<Document>>>,
    applied: Vec<Option<Applied>>,
    /// Refused, so that what refers to them waits.
    failed: BTreeSet<Address>,
    /// What a dry run would create.
    planned: BTreeSet<Address>,
}

impl Run {
    /// Refuses what cannot be read and all but the first document of an object.
    fn new(drafts: Vec<Draft>) -> Self {
        let mut run = Self {
            documents: Vec::new(),
            applied: Vec::new(),
            failed: BTreeSet::new(),
            planned: BTreeSet::new(),
        };
        let mut seen = BTreeSet::new();
        for Draft { address, document } in drafts {
            let document =
                document.and_then(|document| match seen.insert(document.address.clone()) {
                    true => Ok(document),
                    false => Err(duplicate(&document.address)),
                });
            match document {
                Ok(document) => {
                    run.documents.push(Some(Arc::new(document)));
                    run.applied.push(None);
                }
                Err(refusal) => {
                    if refusal.kind != ErrorKind::DocumentDuplicate {
                        run.failed.extend(address);
                    }
                    run.documents.push(None);
                    run.applied.push(Some(Applied::refused(refusal)));
                }
            }
        }
        run
    }

    async fn apply_kind(
        &mut self,
        context: &Context,
        caller: &Caller,
        options: &Options,
        kind: DocumentKind,
    ) -> Result<(), Error> {
        let of_kind = |document: &&Arc<Document>| document.address.kind == kind;
        let numbered = self.documents.iter().enumerate();
        let documents: Vec<(usize, Arc<Document>)> = numbered
            .filter_map(|(number, document)| {
                Some((number, Arc::clone(document.as_ref().filter(of_kind)?)))
            })
            .collect();
        if documents.is_empty() {
            return Ok(());
        }
        let wanted: Vec<Address> =
            documents.iter().map(|(_, document)| document.address.clone()).collect();
        let known = match Known::read(Applier { context, caller }, kind, &wanted).await {
            Ok(known) => known,
            Err(error) if is_of_all(&error) => return Err(error),
            Err(error) => {
                let all: Vec<usize> = documents.iter().map(|(number, _)| *number).collect();
                self.refuse(&all, &error.refusal);
                return Ok(());
            }
        };
        let one = One { context, caller, options };
        let documents = match kind {
            DocumentKind::Resource if !options.dry_run => {
                self.declare_new(one, documents, &known).await?
            }
            _ => documents,
        };
        let (failed, planned, known) = (&self.failed, &self.planned, &known);
        let in_work: Vec<BoxFuture<'_, (usize, Result<Done, Error>)>> = documents
            .into_iter()
            .map(|(number, document)| -> BoxFuture<'_, _> {
                Box::pin(
                    async move { (number, one.apply(&document, known, failed, planned).await) },
                )
            })
            .collect();
        let results: Vec<_> = stream::iter(in_work).buffer_unordered(AT_ONCE).collect().await;
        let mut settled = Vec::new();
        for (number, result) in results {
            match result {
                Ok(done) => {
                    settled.extend(done.settled);
                    self.done(number, done.applied);
                }
                Err(error) if is_of_all(&error) => return Err(error),
                Err(error) => self.done(number, Applied::refused(error.refusal)),
            }
        }
        if !settled.is_empty() && !options.dry_run {
            // In one order, so that two applies wait for each other instead of deadlocking.
            settled.sort_by_key(|row: &DeclaredObject| (row.address.path(), row.source.clone()));
            context.stores.files.declared_put(&settled).await?;
        }
        Ok(())
    }

    /// Declares the resources that are new, with few commits, and answers the documents that
    /// are left: those of objects that exist, and those that somebody overtook.
    async fn declare_new(
        &mut self,
        one: One<'_>,
        documents: Vec<(usize, Arc<Document>)>,
        known: &Known,
    ) -> Result<Vec<(usize, Arc<Document>)>, Error> {
        let is_new = |document: &Document| {
            let needs = kind::of(document.address.kind).needs(document);
            known.live(&document.address).is_none()
                && known.has_project(&document.address)
                && !needs.iter().any(|needed| self.failed.contains(needed))
        };
        let (mut new, mut rest): (Vec<_>, Vec<_>) =
            documents.into_iter().partition(|(_, document)| is_new(document));
        new.sort_by(|(_, one), (_, other)| one.address.cmp(&other.address));
        let mut outcomes = Vec::with_capacity(new.len());
        for (_, document) in &new {
            let terms = kind::of(document.address.kind).terms();
            outcomes.push(plan(None, &document.fields(), None, &[], &terms, false)?);
        }
        let planned = new.iter().zip(&outcomes);
        let rows: Vec<Vec<DeclaredObject>> =
            planned.map(|((_, document), outcome)| one.rows(document, known, outcome)).collect();
        let inputs = new.iter().map(|(_, document)| declaration(document)).collect();
        let beside = |number: usize, commit: &mut Commit| write::add(commit, &rows[number]);
        let declared = declare::declare_all(one.context, one.caller, inputs, beside).await?;
        for (((number, document), outcome), declared) in new.into_iter().zip(outcomes).zip(declared)
        {
            match declared {
                Ok(_) => {
                    let changes = outcome.changes;
                    let verdict = Verdict::Created;
                    let applied = Applied { verdict, changes, secret: None, plan: None };
                    self.done(number, applied);
                }
                Err(error) if is_of_all(&error) => return Err(error),
                Err(error) if was_overtaken(&error) => rest.push((number, document)),
                Err(error) => self.done(number, Applied::refused(error.refusal)),
            }
        }
        Ok(rest)
    }

    fn refuse(&mut self, numbers: &[usize], refusal: &Refusal) {
        for number in numbers {
            self.done(*number, Applied::refused(refusal.clone()));
        }
    }

    fn done(&mut self, number: usize, applied: Applied) {
        let address = self.documents[number].as_ref().map(|document| document.address.clone());
        match &applied.verdict {
            Verdict::Refused(_) => self.failed.extend(address),
            Verdict::Created => self.planned.extend(address),
            Verdict::Changed | Verdict::Unchanged => {}
        }
        self.applied[number] = Some(applied);
    }
}

/// Ends what a source declares of an object: its fields go back to their defaults unless
/// another source owns them, and the object stays. Refused if the source declares nothing.
pub async fn release(
    context: &Context,
    caller: &Caller,
    source: &str,
    address: &Address,
) -> Result<(), Error> {
    authorise(caller, Operation::FilesApply)?;
    check_source(source)?;
    let options = Options { source: source.to_owned(), dry_run: false, force: false };
    let one = One { context, caller, options: &options };
    let document = Document {
        address: address.clone(),
        labels: BTreeMap::new(),
        spec: Map::new(),
        versions: Vec::new(),
        content: None,
        origin: String::new(),
        plan: None,
    };
    let addresses = std::slice::from_ref(address);
    let known = Known::read(Applier { context, caller }, address.kind, addresses).await?;
    // Of something on its way out nothing is left to take back.
    let stays = known.live(address).is_some_and(|live| !live.leaving);
    if stays && known.mine(address, source).is_some() {
        one.apply(&document, &known, &BTreeSet::new(), &BTreeSet::new()).await?;
    }
    let (files, path) = (&context.stores.files, address.path());
    if files.declared_forget(source, address.kind, &path, caller.project).await? {
        return Ok(());
    }
    let message = format!("source `{source}` declares no {address}; see `slipway source get`");
    Err(Refusal::new(ErrorKind::SourceNotFound, message).into())
}

/// An error that every further document would meet too.
fn is_of_all(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unavailable
            | ErrorKind::DatabaseReadOnly
            | ErrorKind::DatabaseFull
            | ErrorKind::Internal
    )
}

fn duplicate(address: &Address) -> Refusal {
    let message = format!("another document is about {address} too; keep one of them");
    Refusal::new(ErrorKind::DocumentDuplicate, message).at("metadata.name")
}

/// A document that was applied, and the rows that have to be written although the object
/// stays as it is.
struct Done {
    applied: Applied,
    settled: Vec<DeclaredObject>,
}

#[derive(Clone, Copy)]
struct One<'a> {
    context: &'a Context,
    caller: &'a Caller,
    options: &'a Options,
}

impl<'a> One<'a> {
    fn by(&self) -> Applier<'a> {
        Applier { context: self.context, caller: self.caller }
    }

    async fn apply(
        self,
        document: &Document,
        known: &Known,
        failed: &BTreeSet<Address>,
        planned: &BTreeSet<Address>,
    ) -> Result<Done, Error> {
        let needs = kind::of(document.address.kind).needs(document);
        if let Some(needed) = needs.iter().find(|needed| failed.contains(needed)) {
            let message = format!("waits for {needed}, which was refused; correct that one first");
            return Err(Refusal::new(ErrorKind::DependencyFailed, message).into());
        }
        // What a dry run would only create now cannot be referred to yet.
        let early = self.options.dry_run && needs.iter().any(|needed| planned.contains(needed));
        let mut result = self.attempt(document, known, early).await;
        for _ in 1..MOST_TRIES {
            match &result {
                Err(error) if was_overtaken(error) => {}
                _ => return result,
            }
            let address = std::slice::from_ref(&document.address);
            let kind = document.address.kind;
            let again = Known::read(self.by(), kind, address).await?;
            result = self.attempt(document, &again, early).await;
        }
        result
    }

    async fn attempt(
        &self,
        document: &Document,
        known: &Known,
        early: bool,
    ) -> Result<Done, Error> {
        let Options { source, force, .. } = self.options;
        let (address, kind) = (&document.address, kind::of(document.address.kind));
        let (mine, others) = (known.mine(address, source), known.others(address, source));
        let mut live = known.live(address).cloned();
        if let Some(live) = &mut live {
            if live.leaving {
                return Err(leaving(address).into());
            }
            kind.verify(self.by(), document, live, mine).await?;
        }
        let fields = live.as_ref().map(|live| &live.fields);
        let outcome = plan(fields, &document.fields(), mine, &others, &kind.terms(), *force)?;
        if live.is_none() && !early && !known.has_project(address) {
            return Err(without_project(address).into());
        }
        let rows = self.rows(document, known, &outcome);
        let differs = live.is_none() || !outcome.changes.is_empty();
        let plan = match self.options.dry_run && !early && differs {
            true => kind.plan(self.by(), document, &outcome.target).await?,
            false => None,
        };
        let changes = outcome.changes.clone();
        let made = match &live {
            Some(_) if outcome.changes.is_empty() => {
                let (verdict, changes) = (Verdict::Unchanged, Vec::new());
                let applied = Applied { verdict, changes, secret: None, plan: None };
                Ok(Done { applied, settled: rows })
            }
            Some(live) => self.change(document, live, outcome, rows).await,
            None => self.create(document, outcome, rows, early).await,
        };
        match made {
            Ok(Done { applied, settled }) => {
                Ok(Done { applied: Applied { plan, ..applied }, settled })
            }
            // What is in its way is part of what it shows.
            Err(error) if plan.is_some() && !is_of_all(&error) && !was_overtaken(&error) => {
                let verdict = Verdict::Refused(error.refusal);
                let applied = Applied { verdict, changes, secret: None, plan };
                Ok(Done { applied, settled: Vec::new() })
            }
            Err(error) => Err(error),
        }
    }

    async fn create(
        &self,
        document: &Document,
        outcome: Outcome,
        rows: Vec<DeclaredObject>,
        early: bool,
    ) -> Result<Done, Error> {
        let secret = if early {
            None
        } else {
            let context = &self.beside(rows).await;
            let by = Applier { context, ..self.by() };
            let made = kind::of(document.address.kind).create(by, document).await;
            allowed(made)?.flatten()
        };
        let (verdict, changes) = (Verdict::Created, outcome.changes);
        let applied = Applied { verdict, changes, secret, plan: None };
        Ok(Done { applied, settled: Vec::new() })
    }

    async fn change(
        &self,
        document: &Document,
        live: &Live,
        outcome: Outcome,
        rows: Vec<DeclaredObject>,
    ) -> Result<Done, Error> {
        let context = &self.beside(rows).await;
        let kind = kind::of(document.address.kind);
        let (Outcome { target, changes, .. }, defaults) = (&outcome, &kind.terms().defaults);
        let wanted = Desired { document, live, target, changes, defaults };
        allowed(kind.change(Applier { context, ..self.by() }, wanted).await)?;
        let (verdict, changes) = (Verdict::Changed, outcome.changes);
        let applied = Applied { verdict, changes, secret: None, plan: None };
        Ok(Done { applied, settled: Vec::new() })
    }

    /// The rows that change: those of the source, and of others that lose a field.
    fn rows(&self, document: &Document, known: &Known, outcome: &Outcome) -> Vec<DeclaredObject> {
        let address = &document.address;
        let owned = outcome.owned.clone().map(|fields| {
            let source = &self.options.source;
            known.row(self.context, source, address, fields, &document.origin)
        });
        let taken = outcome.taken.iter().filter_map(|owner| {
            let row = known.rows(address).find(|row| row.source == owner.source)?;
            Some(DeclaredObject { fields: owner.fields.clone(), ..row.clone() })
        });
        owned.into_iter().chain(taken).collect()
    }

    /// The context whose decisions record the owners too.
    async fn beside(&self, rows: Vec<DeclaredObject>) -> Context {
        let beside = Arc::new(Beside { rows, dry_run: self.options.dry_run });
        let stores = self.context.stores.files.beside(beside).await;
        Context { stores, ..self.context.clone() }
    }
}

/// The result; `None` if a dry run shows that it would go through.
fn allowed<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.is_dry_run() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Somebody else wrote the object since it was read.
fn was_overtaken(error: &Error) -> bool {
    let kinds = [
        ErrorKind::RevisionStale,
        ErrorKind::NameTaken,
        ErrorKind::HandleTaken,
        // The same of a tenant.
        ErrorKind::TenantBusy,
        ErrorKind::TenantReady,
        ErrorKind::TenantFailed,
        // A label, registration or target that came or went.
        ErrorKind::EntryExists,
        ErrorKind::EntryNotFound,
    ];
    kinds.contains(&error.kind())
}

/// An id would find it too, but names are what objects are known by here.
fn without_project(address: &Address) -> Refusal {
    let placed = address.kind == DocumentKind::Placement;
    let (field, name) = match placed {
        true => ("metadata.name", Some(&address.name)),
        false => ("metadata.project", address.project.as_ref()),
    };
    let name = name.map(String::as_str).unwrap_or_default();
    let message = format!("there is no project `{name}`; check its name");
    Refusal::new(ErrorKind::ProjectNotFound, message).at(field)
}

fn leaving(address: &Address) -> Refusal {
    let message =
        format!("{address} is being deleted; apply again when it is gone, or cancel its deletion");
    Refusal::new(ErrorKind::Leaving, message)
}
