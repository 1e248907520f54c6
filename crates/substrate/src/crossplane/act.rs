//! Acts on composites: server-side apply, and deletion in two steps. Both read
//! the object first and name it in the request.
//!
//! A request whose claim is over may still arrive, seconds after a newer claim
//! acted. Whatever it finds then, no older claim ends on top of a newer one:
//!
//! | what arrives late | the newer claim meanwhile | result |
//! |---|---|---|
//! | create | did nothing yet | the object is made; the create of the newer claim conflicts, reads it and updates it |
//! | | made the object | conflict |
//! | | made and deleted it, or proved it absent | the object is made under the older claim: in a deletion the second proof finds and removes it; otherwise its token is not in place and the next tick updates it |
//! | update | found nothing to write | it lands on the version that the newer claim saw; that is drift, which wakes the resource and is overwritten |
//! | | wrote the object | conflict |
//! | | deleted it (terminating or gone) | conflict; a deletion writes its time into the object |
//! | | deleted and made it anew | conflict: another uid |
//! | delete | did nothing yet, or wrote the object | deleted: a deletion is never taken back |
//! | | made the object anew | conflict: another uid |
//! | removal of our finalizer | did nothing yet | removed, as the newer claim would |
//! | | wrote or released the object | conflict, or gone |
//! | | made the object anew | conflict: another uid |
//!
//! The tests in `tests/kube/late.rs` hold requests back and let them land in each
//! of these situations.

use slipway_app::ports::substrate::{Address, Error};
use slipway_cluster::{Connection, DynamicObject, Facts, ObjectRef};
use slipway_core::broker::observation::CompositeReport;
use slipway_render::{RenderedComposite, composite, injection};

use super::engine::{CrossplaneSubstrate, Index, failed, key_of, not_written, object_of, shown};
use super::live_object::LiveObject;
use super::{FIELD_MANAGER, observe};

/// Attempts when somebody else writes the object between our read and our write.
const RETRIES: usize = 4;

/// *Expected flow:* read, unless the observation just did → stop if the object
/// is another's, terminating, written under a newer claim or already as rendered
/// → create or update, conditionally.
/// *Guarantees:* a create fails if anything is there, an update if the object
/// was written since it was read. Both then read again, and decide again whether
/// this claim may write.
pub(super) async fn apply(
    engine: &CrossplaneSubstrate,
    rendered: &RenderedComposite,
) -> Result<CompositeReport, Error> {
    let address = address_of(rendered)?;
    let kind = address.composite_type.as_ref().ok_or_else(|| no_type(&address))?;
    let object = object_of(kind, &address);
    let index = &engine.kind(kind).watch.index;
    let mut live = match index.current(&key_of(&address)) {
        Some(known) => Some(LiveObject::clone(&known)),
        // The observation that led here serves as the read while it is fresh.
        None if index.take_absent(&key_of(&address)) => None,
        None => observe::fetch(engine, kind, &address).await.map_err(failed)?,
    };
    for _ in 0..RETRIES {
        if let Some(live) = &live {
            may_write(engine, live, &address, rendered)?;
            if is_so(live, rendered) {
                return Ok(CompositeReport::Present(Box::new(live.live())));
            }
        }
        match write(engine, &object, rendered, live.as_ref()).await {
            Ok(answer) => {
                let answer = LiveObject::parse(&answer).ok_or_else(|| {
                    Error::Failed(format!("could not apply {object}: no uid came back"))
                })?;
                let report = engine.report(&answer, &address);
                index.answered(key_of(&address), answer);
                return Ok(report);
            }
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(not_written(error)),
        }
        live = observe::fetch(engine, kind, &address).await.map_err(failed)?;
    }
    Err(Error::Conflict(busy("apply", &object)))
}

/// Whether this claim may write the live object.
fn may_write(
    engine: &CrossplaneSubstrate,
    live: &LiveObject,
    address: &Address,
    rendered: &RenderedComposite,
) -> Result<(), Error> {
    if let Some(reason) = engine.another(live, address) {
        return Err(Error::Conflict(reason));
    }
    let ours = rendered.claim_token();
    if let Some(found) = live.claim_token.filter(|found| *found > ours) {
        return Err(Error::Superseded { ours, found });
    }
    if live.is_terminating() {
        return Err(Error::Conflict(format!(
            "the composite {} is being deleted; apply again when it is gone",
            shown(address)
        )));
    }
    Ok(())
}

/// Whether there is nothing to write. A new claim token alone is not worth a
/// request.
fn is_so(live: &LiveObject, rendered: &RenderedComposite) -> bool {
    live.owned_hash() == rendered.owned_hash()
        && live.carried() == injection::carried(rendered.expose_object())
        && live.is_held()
}

/// One conditional write, on what was read.
async fn write(
    engine: &CrossplaneSubstrate,
    object: &ObjectRef,
    rendered: &RenderedComposite,
    live: Option<&LiveObject>,
) -> Result<DynamicObject, slipway_cluster::Error> {
    let body = rendered.expose_object();
    let Some(live) = live else {
        let create = async |to: &Connection| to.create_applied(object, body, FIELD_MANAGER).await;
        return engine.permitted(create).await;
    };
    let read = live.version();
    let update = async |to: &Connection| to.update(object, &read, body, FIELD_MANAGER).await;
    let updated = engine.permitted(update).await?;
    if !updated.taken_over.is_empty() {
        let fields = &updated.taken_over;
        tracing::info!(%object, ?fields, "another field manager owned fields of Slipway; Slipway overwrote them");
        engine.overrules();
    }
    Ok(updated.object)
}

/// *Expected flow:* read → delete by uid → remove our finalizer. The owners of
/// other finalizers go on by themselves.
/// *Guarantees:* deletes only an object of this installation with this uid, on
/// the registered cluster.
pub(super) async fn delete(
    engine: &CrossplaneSubstrate,
    address: &Address,
    uid: &str,
) -> Result<(), Error> {
    let found;
    let kind = match &address.composite_type {
        Some(kind) => kind,
        // The kind of a leak may be unknown.
        None => match observe::kind_of(engine, address).await.map_err(failed)? {
            Some(kind) => {
                found = kind;
                &found
            }
            None => return Ok(()),
        },
    };
    let address = &Address { composite_type: Some(kind.clone()), ..address.clone() };
    let index = &engine.kind(kind).watch.index;
    let known = index.current(&key_of(address));
    if known.as_ref().is_some_and(|known| *known.uid == *uid && is_released(known)) {
        // Deleted and released already; only other finalizers remain.
        return Ok(());
    }
    engine.same_cluster(address.substrate_uid.as_deref()).await.map_err(failed)?;
    let live = match known {
        Some(known) => LiveObject::clone(&known),
        None => match observe::fetch(engine, kind, address).await.map_err(failed)? {
            Some(live) => live,
            None => return Ok(()),
        },
    };
    if let Some(reason) = engine.foreign(&live, &shown(address)) {
        return Err(Error::Conflict(reason));
    }
    if *live.uid == *uid && live.is_terminating() {
        return release(engine, index, address, live).await;
    }
    let object = object_of(kind, address);
    let left = match engine.permitted(async |to| to.delete(&object, uid).await).await {
        Ok(left) => left,
        Err(error) if error.is_conflict() => return Err(Error::Conflict(error.to_string())),
        Err(error) => return Err(not_written(error)),
    };
    match left.as_ref().and_then(LiveObject::parse) {
        Some(live) if *live.uid == *uid => {
            index.answered(key_of(address), live.clone());
            release(engine, index, address, live).await
        }
        _ => Ok(()),
    }
}

fn is_released(live: &LiveObject) -> bool {
    live.is_terminating() && !live.is_held()
}

/// Removes our finalizer from a terminating object, so that it can go.
async fn release(
    engine: &CrossplaneSubstrate,
    index: &Index,
    address: &Address,
    mut live: LiveObject,
) -> Result<(), Error> {
    let kind = address.composite_type.as_ref().ok_or_else(|| no_type(address))?;
    let object = object_of(kind, address);
    let uid = live.uid.clone();
    for _ in 0..RETRIES {
        if live.uid != uid || is_released(&live) {
            return Ok(());
        }
        let others = live.finalizers.iter().map(|name| &**name);
        let others: Vec<_> = others.filter(|name| *name != composite::FINALIZER_DRAIN).collect();
        let read = live.version();
        let release =
            async |to: &Connection| to.set_finalizers(&object, &read, &others, FIELD_MANAGER).await;
        match engine.permitted(release).await {
            Ok(answer) => {
                // Without finalizers the object is gone; the watch reports its
                // deletion.
                let answer = answer.as_ref().and_then(LiveObject::parse);
                if let Some(live) = answer.filter(|live| !live.finalizers.is_empty()) {
                    index.answered(key_of(address), live);
                }
                return Ok(());
            }
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(not_written(error)),
        }
        live = match observe::fetch(engine, kind, address).await.map_err(failed)? {
            Some(live) => live,
            None => return Ok(()),
        };
    }
    Err(Error::Failed(busy("release", &object)))
}

/// The address of a rendered composite, from its own labels and names.
fn address_of(rendered: &RenderedComposite) -> Result<Address, Error> {
    let labels = &rendered.expose_object()["metadata"]["labels"];
    let owner = labels[composite::LABEL_PROVISIONED_RESOURCE].as_str();
    let owner = owner.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let name = rendered.name();
        Error::Failed(format!("the composite {name} names no provisioned resource"))
    })?;
    Ok(Address {
        provisioned_resource_id: owner,
        namespace: rendered.namespace().to_owned(),
        name: rendered.name().to_owned(),
        composite_type: rendered.composite_type().cloned(),
        substrate_uid: None,
    })
}

fn busy(verb: &str, object: &ObjectRef) -> String {
    format!("could not {verb} {object}: somebody else keeps writing it; it is tried again")
}

fn no_type(address: &Address) -> Error {
    Error::Failed(format!(
        "the blueprint of {} has no composite type; publish a version of it from its XRD",
        shown(address)
    ))
}
