//! Purging what is past its retention, and by hand.

use std::time::{Duration, Instant};

use slipway_core::access::audit::Actor;
use slipway_core::blocker::BlockerCode;
use slipway_core::commit::Commit;
use slipway_core::deletion::purge::{self, PurgeSnapshot, Trigger, Withheld};
use slipway_core::deletion::record::{Deletion, DeletionState};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DeletionId, GeneratorId};
use slipway_core::subject::SubjectKind;
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach::{not_found, reach};
use crate::deletion::port::{DeletionFilter, Members, PurgeCounts};
use crate::deletion::request::wake;
use crate::deletion::run::{Passed, Runner};
use crate::ports::store::{self, PAGE_MAX, Page};
use crate::{Context, Error};

/// Deletions that one pass looks at.
const DUE: u32 = 50;
/// How long until a deletion that something withholds is looked at again, at most.
const RECHECK: Duration = Duration::from_secs(3_600);
/// Attempts, resources or addresses in one transaction: some ten milliseconds of SQLite's
/// only writer.
pub const BATCH: u32 = 50;
/// Batches in one pass: what else is due waits no longer than that.
const BATCHES: usize = 20;
/// How many times as long as a batch the rest after it is.
const RESTS: u32 = 3;
const REST_MAX: Duration = Duration::from_millis(500);

impl Runner {
    /// Begins the purges that are due, and takes those that run further.
    pub(super) async fn purge(&self, passed: &mut Passed) -> Result<(), store::Error> {
        let store = &self.context().stores.deletion;
        let mut batches = 0;
        for deletion in store.purge_due(RECHECK, DUE).await? {
            let stepped = match deletion.state {
                DeletionState::Purging => Ok(true),
                _ => self.begin_purge(&deletion).await,
            };
            let ended = match stepped {
                Ok(true) => self.remove(deletion.id, &mut batches, passed).await,
                Ok(false) => {
                    passed.refused += 1;
                    Ok(())
                }
                Err(error) => Err(error),
            };
            match ended {
                Ok(()) => {}
                Err(error) if error.is_logged() => return Err(error),
                // Somebody else wrote it; the next pass reads it again.
                Err(store::Error::Refused(refusal)) if refusal.kind == ErrorKind::RevisionStale => {
                }
                // A row that cannot be read or removed holds its own deletion and no other.
                Err(error) => {
                    tracing::warn!(deletion_id = %deletion.id, %error, "a purge does not go on");
                    let refusal = Refusal::new(ErrorKind::RowInvalid, error.to_string());
                    self.withhold(deletion.id, &refusal).await?;
                }
            }
            if batches >= BATCHES {
                break;
            }
        }
        Ok(())
    }

    /// Whether it may be purged now; shows why not.
    async fn begin_purge(&self, deletion: &Deletion) -> Result<bool, store::Error> {
        let mut begun = false;
        let mut rule = |snapshot: &PurgeSnapshot| {
            let commit = purge::begin(snapshot, Trigger::Retention, self.actor())?;
            begun = !commit.is_empty();
            Ok(commit)
        };
        match self.context().stores.deletion.purge_decide(deletion.id, &mut rule).await {
            Ok(()) => Ok(begun),
            Err(store::Error::Refused(refusal)) if refusal.kind == ErrorKind::PurgeWithheld => {
                self.withhold(deletion.id, &refusal).await?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn withhold(&self, id: DeletionId, refusal: &Refusal) -> Result<(), store::Error> {
        self.show_as(BlockerCode::PurgeWithheld, id, Some(refusal)).await?;
        self.context().stores.deletion.purge_checked(id).await
    }

    /// Removes batches until nothing is left, the mode withholds it, or the pass has done
    /// enough.
    async fn remove(
        &self,
        id: DeletionId,
        batches: &mut usize,
        passed: &mut Passed,
    ) -> Result<(), store::Error> {
        let store = &self.context().stores.deletion;
        while *batches < BATCHES {
            *batches += 1;
            let begun = Instant::now();
            let step = store.purge_batch(id, BATCH).await?;
            if step.withheld {
                passed.withheld = true;
                return Ok(());
            }
            if step.waits {
                return store.purge_checked(id).await;
            }
            passed.purged += 1;
            if !step.is_left {
                let mut rule = |snapshot: &PurgeSnapshot| Ok(purge::end(snapshot, self.actor()));
                store.purge_decide(id, &mut rule).await?;
                tracing::info!(deletion_id = %id, "purged a deletion");
                return Ok(());
            }
            rest(begun.elapsed()).await;
        }
        Ok(())
    }
}

/// After a batch that took this long: nobody waits for a purge, and whoever reads or writes
/// beside it has most of the database to themselves.
pub async fn rest(took: Duration) {
    tokio::time::sleep((took * RESTS).min(REST_MAX)).await;
}

/// What a purge by hand asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct PurgeOptions<'a> {
    /// Without it nothing is removed.
    pub force: bool,
    pub reason: Option<&'a str>,
    /// Although purge protection covers it; needs a reason.
    pub despite_protection: bool,
    /// Erases the content at once, also while something needs the rows.
    pub now: bool,
}

/// What a purge removes, and what withholds it.
#[derive(Debug, Clone)]
pub struct PurgeReport {
    pub deletion: Deletion,
    pub counts: PurgeCounts,
    pub sample: Members,
    pub withheld: Vec<Withheld>,
}

/// Names that a report has.
const SAMPLE: u32 = 10;

/// Counts what a purge would remove; with `force` it begins, and the loop goes on.
pub async fn purge(
    context: &Context,
    caller: &Caller,
    id: DeletionId,
    options: PurgeOptions<'_>,
) -> Result<PurgeReport, Error> {
    let actor = authorise(caller, Operation::DeletionPurge)?;
    let missing = || not_found(ErrorKind::DeletionNotFound, "deletion", id);
    reach(context, caller, Owned::Deletion(id), missing).await?;
    let PurgeOptions { force, reason, despite_protection, now } = options;
    let force = force || now;
    if reason.is_none() && force {
        let text = "say why it is purged before its retention ends; the audit keeps it";
        return Err(Refusal::invalid("reason", text).into());
    }
    let reason = Reason::parse(reason.unwrap_or("a count")).map_err(Refusal::from)?;
    let store = &context.stores.deletion;
    let trigger = Trigger::ByHand { reason: &reason, despite_protection, now };
    if force {
        earlier(context, id, trigger, &actor).await?;
    }
    // Counted first: the loop may remove everything at once.
    let counts = store.purge_counts(id).await?;
    let sample = store.deletion_members(id, SAMPLE).await?;
    let mut seen = None;
    let mut rule = |snapshot: &PurgeSnapshot| {
        seen = Some((snapshot.deletion.clone(), snapshot.withheld(despite_protection)));
        match force {
            true => purge::begin(snapshot, trigger, &actor),
            false => Ok(Commit::default()),
        }
    };
    store.purge_decide(id, &mut rule).await?;
    let (before, withheld) = seen.ok_or_else(missing)?;
    // Whoever asked for it is answered when the content is gone; if this process dies first,
    // the loop goes on.
    while now && store.purge_erase(id, BATCH).await? > 0 {}
    if force {
        wake(context).await;
    }
    let deletion = store.deletion_fetch(id).await?.unwrap_or(before);
    let withheld = if force { Vec::new() } else { withheld };
    Ok(PurgeReport { deletion, counts, sample, withheld })
}

/// Whatever was deleted of a generator before it goes before it: nobody could restore it without
/// the generator. All of it may be purged, or nothing is.
async fn earlier(
    context: &Context,
    id: DeletionId,
    trigger: Trigger<'_>,
    actor: &Actor,
) -> Result<(), Error> {
    let store = &context.stores.deletion;
    let before = store.purge_before(id).await?;
    for begins in [false, true] {
        for id in &before {
            let mut rule = |snapshot: &PurgeSnapshot| {
                let commit = purge::begin(snapshot, trigger, actor)?;
                Ok(if begins { commit } else { Commit::default() })
            };
            store.purge_decide(*id, &mut rule).await?;
            while begins && store.purge_erase(*id, BATCH).await? > 0 {}
        }
    }
    Ok(())
}

/// Which deletions a purge of many is about; those that are done.
#[derive(Debug, Clone, Default)]
pub struct PurgeFilter {
    /// Name or id.
    pub project: Option<String>,
    pub generator: Option<GeneratorId>,
    pub kind: Option<SubjectKind>,
    pub name_prefix: Option<String>,
    pub label: Option<String>,
}

/// What a purge of many found.
#[derive(Debug, Clone, Default)]
pub struct PurgedMany {
    /// How many deletions fit.
    pub found: u64,
    /// The first of them, with what withholds their purge.
    pub sample: Vec<(Deletion, Vec<Withheld>)>,
    /// How many began to be purged.
    pub begun: u64,
}

/// Deletions that a purge of many shows.
const SHOWN: usize = 100;
/// Deletions that one request purges.
const MANY: u64 = 10_000;

/// Purges the deletions that fit, such as those of test data; without `force` it only counts.
/// What is withheld stays, and is shown.
pub async fn purge_many(
    context: &Context,
    caller: &Caller,
    filter: &PurgeFilter,
    options: PurgeOptions<'_>,
) -> Result<PurgedMany, Error> {
    authorise(caller, Operation::DeletionPurge)?;
    let PurgeFilter { project, generator, kind, name_prefix, label } = filter.clone();
    if name_prefix.as_deref().unwrap_or_default().is_empty() && label.is_none() {
        let problem = "is required, or `label`: a purge of many says which";
        return Err(Refusal::invalid("name_prefix", problem).into());
    }
    if project.is_none() && generator.is_none() && caller.project.is_none() {
        let problem = "is required, or `generator_id`: a purge of many stays within one of them";
        return Err(Refusal::invalid("project", problem).into());
    }
    let filter = DeletionFilter {
        own: caller.project,
        project,
        generator,
        kind,
        name_prefix,
        label,
        state: Some(DeletionState::Done),
        ..DeletionFilter::default()
    };
    let store = &context.stores.deletion;
    let mut many = PurgedMany::default();
    let mut page = Page { after: None, limit: PAGE_MAX };
    loop {
        let listed = store.deletion_list(&filter, page).await?;
        let last = listed.last().map(|deletion| deletion.id);
        let is_full = listed.len() >= PAGE_MAX as usize;
        for deletion in listed.into_iter() {
            many.found += 1;
            let withheld = match purge(context, caller, deletion.id, options).await {
                Ok(report) => {
                    many.begun += u64::from(options.force || options.now);
                    report.withheld
                }
                Err(error) if error.kind() == ErrorKind::PurgeWithheld => {
                    let message = error.to_string();
                    vec![Withheld { code: ErrorKind::PurgeWithheld.code(), message }]
                }
                Err(error) => return Err(error),
            };
            if many.sample.len() < SHOWN {
                many.sample.push((deletion, withheld));
            }
        }
        match last {
            Some(last) if is_full && many.found < MANY => page.after = Some(last),
            _ => return Ok(many),
        }
    }
}
