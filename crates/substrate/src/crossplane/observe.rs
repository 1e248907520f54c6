//! Observes composites: from the index where it is current, else by a request.
//! Only an answer of the server, with its proofs, makes a composite absent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::{StreamExt, stream};
use slipway_app::ports::substrate::Address;
use slipway_cluster::{Error, Facts, require_identity};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::catalog::blueprint_version::CompositeType;

use super::engine::{CrossplaneSubstrate, key_of, object_of, shown};
use super::live_object::LiveObject;

/// How long an observation waits for the first list of a kind.
const FIRST_LIST: Duration = Duration::from_secs(3);

/// Parallel requests of one observation.
const QUESTIONS: usize = 16;

/// *Expected flow:* report what the index has → request the rest from the server
/// → if it answered, ask which cluster it is and, for absent objects, whether
/// their kind is there to stay.
/// *Guarantees:* Absent only if the registered cluster serves the kind and has
/// just answered so. Another cluster yields nothing but Unknown.
/// *Caveats:* for reports from the index, the identity of the cluster was proven
/// when the watch began.
pub(super) async fn observe(
    engine: &CrossplaneSubstrate,
    addresses: &[Address],
) -> Vec<CompositeReport> {
    until_listed(engine, addresses).await;
    let mut reports: Vec<_> = addresses.iter().map(|address| known(engine, address)).collect();
    let open: Vec<_> = (0..addresses.len()).filter(|at| reports[*at].is_none()).collect();
    let asked: Vec<_> = open.iter().map(|at| &addresses[*at]).collect();
    let mut proof = Proof::new(engine);
    for (at, report) in open.iter().zip(ask_all(engine, &asked).await) {
        reports[*at] = Some(proof.confirm(&addresses[*at], report).await);
    }
    let never = || unknown("it was not asked about".to_owned());
    reports.into_iter().map(|report| report.unwrap_or_else(never)).collect()
}

/// Waits for the first lists of all kinds at once. If a list does not arrive in
/// time, the objects of its kind are requested one by one.
async fn until_listed(engine: &CrossplaneSubstrate, addresses: &[Address]) {
    let kinds: BTreeSet<_> =
        addresses.iter().filter_map(|address| address.composite_type.as_ref()).collect();
    let listed = kinds.into_iter().map(|kind| {
        let kind = engine.kind(kind);
        async move { kind.watch.index.started().await }
    });
    let _in_time = tokio::time::timeout(FIRST_LIST, join_all(listed)).await.is_ok();
}

/// The report from the index; `None` where the server has to be asked.
fn known(engine: &CrossplaneSubstrate, address: &Address) -> Option<CompositeReport> {
    let index = &engine.kind(address.composite_type.as_ref()?).watch.index;
    let live = index.current(&key_of(address))?;
    let registered = address.substrate_uid.as_deref();
    Some(match require_identity(&index.cluster()?, registered) {
        Ok(()) => engine.report(&live, address),
        Err(problem) => unknown(problem.to_string()),
    })
}

/// Proofs that the answers of a server need before they count. Each is asked for
/// once per observation, when it is first needed.
struct Proof<'a> {
    engine: &'a CrossplaneSubstrate,
    cluster: Option<Result<String, Error>>,
    kinds: BTreeMap<CompositeType, Result<(), String>>,
}

impl<'a> Proof<'a> {
    const fn new(engine: &'a CrossplaneSubstrate) -> Self {
        Self { engine, cluster: None, kinds: BTreeMap::new() }
    }

    async fn confirm(&mut self, address: &Address, report: CompositeReport) -> CompositeReport {
        if matches!(report, CompositeReport::Unknown { .. }) {
            return report;
        }
        let confirmed = match self.is_there(address).await {
            Ok(()) if matches!(report, CompositeReport::Absent) => {
                self.kind_is_served(address).await
            }
            other => other,
        };
        confirmed.map_or_else(unknown, |()| report)
    }

    async fn is_there(&mut self, address: &Address) -> Result<(), String> {
        let cluster = match self.cluster.take() {
            Some(cluster) => cluster,
            None => self.engine.connection().identity().await,
        };
        let cluster = self.cluster.insert(cluster);
        let found = cluster.as_ref().map_err(Error::to_string)?;
        require_identity(found, address.substrate_uid.as_deref()).map_err(|error| error.to_string())
    }

    async fn kind_is_served(&mut self, address: &Address) -> Result<(), String> {
        let Some(kind) = &address.composite_type else {
            return Err(format!("the kind of the object {} is not known", shown(address)));
        };
        if let Some(proven) = self.kinds.get(kind) {
            return proven.clone();
        }
        let proven = self.engine.kind_is_served(kind).await;
        self.kinds.insert(kind.clone(), proven.clone());
        proven
    }
}

/// Requests each object and reports in the same order. After the first request
/// without an answer it sends no more.
async fn ask_all(engine: &CrossplaneSubstrate, addresses: &[&Address]) -> Vec<CompositeReport> {
    let silence = Mutex::default();
    let questions: Vec<_> =
        addresses.iter().map(|address| ask_unless(engine, &silence, address)).collect();
    stream::iter(questions).buffered(QUESTIONS).collect().await
}

async fn ask_unless(
    engine: &CrossplaneSubstrate,
    silence: &Mutex<Option<String>>,
    address: &Address,
) -> CompositeReport {
    let heard = || silence.lock().unwrap_or_else(PoisonError::into_inner);
    let before = heard().clone();
    if let Some(problem) = before {
        return unknown(problem);
    }
    let asked = match &address.composite_type {
        Some(kind) => ask(engine, kind, address).await,
        None => ask_any_kind(engine, address).await,
    };
    asked.unwrap_or_else(|error| {
        if error.is_no_answer() {
            *heard() = Some(error.to_string());
        }
        unknown(error.to_string())
    })
}

async fn ask(
    engine: &CrossplaneSubstrate,
    kind: &CompositeType,
    address: &Address,
) -> Result<CompositeReport, Error> {
    match fetch(engine, kind, address).await? {
        Some(live) => Ok(engine.report(&live, address)),
        None => Ok(CompositeReport::Absent),
    }
}

/// Searches all kinds that this engine watches for an object of unknown kind.
/// Not finding it proves nothing.
async fn ask_any_kind(
    engine: &CrossplaneSubstrate,
    address: &Address,
) -> Result<CompositeReport, Error> {
    for kind in engine.kinds() {
        let kind = &kind.composite_type;
        let address = Address { composite_type: Some(kind.clone()), ..address.clone() };
        match ask(engine, kind, &address).await? {
            CompositeReport::Absent => {}
            report => return Ok(report),
        }
    }
    Ok(unknown(format!("the kind of the object {} is not known", shown(address))))
}

/// The kind of the object, if it is one of those that this engine watches.
pub(super) async fn kind_of(
    engine: &CrossplaneSubstrate,
    address: &Address,
) -> Result<Option<CompositeType>, Error> {
    for kind in engine.kinds() {
        let kind = &kind.composite_type;
        let address = Address { composite_type: Some(kind.clone()), ..address.clone() };
        if fetch(engine, kind, &address).await?.is_some() {
            return Ok(Some(kind.clone()));
        }
    }
    Ok(None)
}

/// Requests the object. `None` is the answer of a server that knows the kind; the
/// caller has to ask which server that was, and whether the kind will stay.
pub(super) async fn fetch(
    engine: &CrossplaneSubstrate,
    kind: &CompositeType,
    address: &Address,
) -> Result<Option<LiveObject>, Error> {
    let index = &engine.kind(kind).watch.index;
    let asked_at = Instant::now();
    let Some(object) = engine.connection().get(&object_of(kind, address)).await? else {
        index.note_absent(key_of(address), asked_at);
        return Ok(None);
    };
    let live = LiveObject::parse(&object)
        .ok_or_else(|| Error::refused(format!("the composite {} has no uid", shown(address))))?;
    index.answered(key_of(address), live.clone());
    Ok(Some(live))
}

fn unknown(reason: String) -> CompositeReport {
    CompositeReport::Unknown { reason }
}
