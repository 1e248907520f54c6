//! The use-cases that all kinds have in common: show, list, create, change,
//! delete. A kind says in its own file how it is read and who sees what; its
//! rules are in core.

use slipway_core::access::idempotency::Request;
use slipway_core::commit::Commit;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::kind::Kind;
use slipway_core::nearest::nearest;
use slipway_core::text::check_reference;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::idempotency::{bind, record};
use crate::ports::store::{PAGE_MAX, Page, Rule, Stores};
use crate::ports::{KindStore, Listed};
use crate::{Context, Error};

/// A kind that the store keeps.
pub trait StoredKind: Kind {
    /// What a decision locks; a text is a name or an id.
    type Key: ?Sized + Sync;
    /// What a decision reads.
    type Snapshot: Send + Sync;
    /// Which of them a list shows.
    type Filter: Sync;

    /// The operation of showing and listing it.
    const READ: Operation;

    /// The port of its room.
    fn store(stores: &Stores) -> &dyn KindStore<Self>;

    /// What the caller may see of it; `None` if nothing.
    fn seen_by(self, _caller: &Caller) -> Option<Self> {
        Some(self)
    }
}

/// Whether a list shows deleted rows too, for kinds whose rows stay.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShowDeleted(pub bool);

/// Shows one by its name or id.
pub async fn fetch<K: StoredKind>(
    context: &Context,
    caller: &Caller,
    reference: &str,
    show_deleted: bool,
) -> Result<K, Error> {
    authorise(caller, K::READ)?;
    check(K::KIND, reference)?;
    let found = context.stores.kind::<K>().fetch(reference, show_deleted).await?;
    let seen = found.and_then(|found| found.seen_by(caller));
    seen.ok_or_else(|| missing(K::MISSING, K::KIND, reference).into())
}

pub async fn list<K: StoredKind>(
    context: &Context,
    caller: &Caller,
    filter: &K::Filter,
    page: Page<K::Id>,
) -> Result<Listed<K>, Error> {
    authorise(caller, K::READ)?;
    let found = context.stores.kind::<K>().page(filter, page).await?;
    let items = found.items.into_iter().filter_map(|item| item.seen_by(caller)).collect();
    Ok(Listed { items, ..found })
}

/// Creates one under an id drawn for it. The key of the request, if it has one,
/// is bound in the same transaction.
pub(crate) async fn create<K: StoredKind>(
    context: &Context,
    request: Option<Request>,
    id: K::Id,
    key: &K::Key,
    mut rule: impl FnMut(&K::Snapshot) -> Result<Commit, Refusal> + Send,
) -> Result<K::Id, Error> {
    let record = record(context, request, id.into());
    let mut bound =
        |snapshot: &K::Snapshot| rule(snapshot).map(|commit| bind(commit, record.as_ref()));
    context.stores.kind::<K>().decide(key, &mut bound).await?;
    Ok(id)
}

/// Decides about the one of this name or id.
pub(crate) async fn change<K: StoredKind<Key = str>>(
    context: &Context,
    reference: &str,
    rule: &mut Rule<'_, K::Snapshot>,
) -> Result<(), Error> {
    check(K::KIND, reference)?;
    Ok(context.stores.kind::<K>().decide(reference, rule).await?)
}

/// The reason if a request gives none.
pub(crate) const NO_REASON: &str = "none given";

/// A name or id from the path of a request.
pub(crate) fn check(kind: &'static str, reference: &str) -> Result<(), Refusal> {
    Ok(check_reference(kind, reference)?)
}

/// Refuses a filter for one that the caller cannot see, and names the one that
/// was probably meant.
pub(crate) async fn known<K: StoredKind<Filter = ShowDeleted> + Named>(
    context: &Context,
    caller: &Caller,
    reference: &str,
) -> Result<K, Error> {
    check(K::KIND, reference)?;
    let store = context.stores.kind::<K>();
    let found = store.fetch(reference, true).await?.and_then(|found| found.seen_by(caller));
    if let Some(found) = found {
        return Ok(found);
    }
    let page = Page { after: None, limit: PAGE_MAX };
    let others = store.page(&ShowDeleted(false), page).await?.items;
    let seen: Vec<K> = others.into_iter().filter_map(|other| other.seen_by(caller)).collect();
    let meant = nearest(reference, seen.iter().map(K::name));
    let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    let message = format!("there is no {} `{reference}`{meant}", K::KIND);
    Err(Refusal::new(K::MISSING, message).at(K::KIND).into())
}

/// A kind that people name.
pub(crate) trait Named {
    fn name(&self) -> &str;
}

/// Nothing was found. Names no field: the reference is in the path.
pub(crate) fn missing(error: ErrorKind, noun: &str, reference: &str) -> Refusal {
    Refusal::new(error, format!("there is no {noun} `{reference}`; check its name or id"))
}
