//! Acting: server-side apply, and deletion in two steps. Both look first, and
//! name what they have seen, so that nothing else is hit.

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};
use slipway_app::ports::substrate::{Address, Error};
use slipway_core::blueprint::CompositeType;
use slipway_core::observation::CompositeReport;
use slipway_render::{RenderedComposite, composite, injection};

use super::engine::{CrossplaneSubstrate, place_of, shown};
use super::fold::Entry;
use super::{FIELD_MANAGER, observe, trouble};

/// How often is looked again after somebody else wrote in between.
const RETRIES: usize = 4;

/// *Expected flow:* look up, unless the observation just did → leave alone what is another's, terminating, newer,
/// or already so → server-side apply, over other managers if need be.
/// *Guarantees:* what was written since it was looked up, made anew by somebody
/// else for one, is looked up again and not written blindly: its uid and version
/// are in the body.
/// *Caveats:* two that create at the same moment both succeed, and the later one
/// has the last word; the lease is what keeps them apart. What somebody else made
/// under our name since the look, and in which no field of ours has another value,
/// is taken over; names are derived from our ids, so that has to be meant.
pub(super) async fn apply(
    engine: &CrossplaneSubstrate,
    rendered: &RenderedComposite,
) -> Result<CompositeReport, Error> {
    let address = address_of(rendered)?;
    let kind = address.composite_type.as_ref().ok_or_else(|| no_type(&address))?;
    let what = format!("apply {} {}", kind.kind, shown(&address));
    let index = &engine.kind(kind).index;
    let mut live = match index.current(&place_of(&address)) {
        Some(known) => Some(Entry::clone(&known)),
        // The observation that led here was the look, if it is a moment old.
        None if index.take_absent(&place_of(&address)) => None,
        None => observe::look(engine, kind, &address).await.map_err(Error::Failed)?,
    };
    for _ in 0..RETRIES {
        let mut body = rendered.expose_object().clone();
        if let Some(live) = &live {
            may_write(engine, live, &address, rendered)?;
            if is_so(live, rendered) {
                return Ok(CompositeReport::Present(Box::new(live.live())));
            }
            body["metadata"]["uid"] = json!(live.uid);
            body["metadata"]["resourceVersion"] = json!(live.resource_version.to_string());
        }
        let api = engine.api(kind, &address.namespace).await.map_err(Error::Failed)?;
        let error = match patch(engine, &api, &address.name, &body, live.is_some()).await {
            Ok(object) => {
                let entry = Entry::of(&object)
                    .ok_or_else(|| Error::Failed(format!("could not {what}: no uid came back")))?;
                let report = engine.report(&entry, &address);
                index.brought(place_of(&address), entry);
                return Ok(report);
            }
            Err(error) => error,
        };
        if !trouble::is_conflict(&error) {
            return Err(Error::Failed(engine.refused(&what, &error).await));
        }
        live = observe::look(engine, kind, &address).await.map_err(Error::Failed)?;
    }
    Err(Error::Conflict(busy(&what)))
}

/// Whether what is there may be written by this claim.
fn may_write(
    engine: &CrossplaneSubstrate,
    live: &Entry,
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

/// Whether there is nothing to write. The claim alone is not worth a request.
fn is_so(live: &Entry, rendered: &RenderedComposite) -> bool {
    live.owned_hash() == rendered.owned_hash()
        && live.carried() == injection::carried(rendered.expose_object())
        && live.is_held()
}

/// Applies, and overrules whoever else holds a field of ours. Not on an object
/// that was not there a moment ago: whose it is has to be looked at first.
async fn patch(
    engine: &CrossplaneSubstrate,
    api: &Api<DynamicObject>,
    name: &str,
    body: &Value,
    looked_at: bool,
) -> Result<DynamicObject, kube::Error> {
    let parameters = PatchParams::apply(FIELD_MANAGER);
    let refused = match trouble::within(api.patch(name, &parameters, &Patch::Apply(body))).await {
        Ok(object) => return Ok(object),
        Err(error) => error,
    };
    let Some(fields) = trouble::conflicting_fields(&refused).filter(|_| looked_at) else {
        return Err(refused);
    };
    tracing::info!(name, ?fields, "another manager holds fields of ours; it is overruled");
    let patched =
        trouble::within(api.patch(name, &parameters.force(), &Patch::Apply(body))).await?;
    engine.overrules();
    Ok(patched)
}

/// *Expected flow:* look up → delete under the uid → take our finalizer off. What
/// other finalizers wait for goes on by itself.
/// *Guarantees:* only an object of this installation with this uid is told to go,
/// on the cluster that was registered.
pub(super) async fn delete(
    engine: &CrossplaneSubstrate,
    address: &Address,
    uid: &str,
) -> Result<(), Error> {
    let found;
    let kind = match &address.composite_type {
        Some(kind) => kind,
        // What is not known of a leak is found by looking.
        None => match observe::kind_of(engine, address).await.map_err(Error::Failed)? {
            Some(kind) => {
                found = kind;
                &found
            }
            None => return Ok(()),
        },
    };
    let address = &Address { composite_type: Some(kind.clone()), ..address.clone() };
    let index = &engine.kind(kind).index;
    let known = index.current(&place_of(address));
    if known.as_ref().is_some_and(|known| *known.uid == *uid && is_released(known)) {
        // Told already: the rest is not ours to hurry.
        return Ok(());
    }
    engine.same_cluster(address.substrate_uid.as_deref()).await.map_err(Error::Failed)?;
    let live = match known {
        Some(known) => Entry::clone(&known),
        None => match observe::look(engine, kind, address).await.map_err(Error::Failed)? {
            Some(live) => live,
            None => return Ok(()),
        },
    };
    if let Some(reason) = engine.foreign(&live, &shown(address)) {
        return Err(Error::Conflict(reason));
    }
    let api = engine.api(kind, &address.namespace).await.map_err(Error::Failed)?;
    if *live.uid == *uid && live.is_terminating() {
        return let_go(engine, kind, &api, address, live).await;
    }
    let what = format!("delete {} {}", kind.kind, shown(address));
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    let parameters = DeleteParams::background().preconditions(preconditions);
    match trouble::within(api.delete(&address.name, &parameters)).await {
        Ok(answer) => match answer.left().as_ref().and_then(Entry::of) {
            Some(entry) if *entry.uid == *uid => {
                index.brought(place_of(address), entry.clone());
                let_go(engine, kind, &api, address, entry).await
            }
            _ => Ok(()),
        },
        Err(error) if trouble::is_conflict(&error) => {
            Err(Error::Conflict(trouble::describe(&what, &error)))
        }
        Err(error) => unless_gone(engine, kind, address, &what, &error).await,
    }
}

fn is_released(entry: &Entry) -> bool {
    entry.is_terminating() && !entry.is_held()
}

/// Takes our finalizer off what is terminating, so that it can go.
async fn let_go(
    engine: &CrossplaneSubstrate,
    kind: &CompositeType,
    api: &Api<DynamicObject>,
    address: &Address,
    mut live: Entry,
) -> Result<(), Error> {
    let what = format!("release {} {}", kind.kind, shown(address));
    let uid = live.uid.clone();
    for _ in 0..RETRIES {
        if live.uid != uid || is_released(&live) {
            return Ok(());
        }
        let others: Vec<_> =
            live.finalizers.iter().filter(|name| ***name != *composite::FINALIZER_DRAIN).collect();
        let body = json!({ "metadata": {
            "uid": live.uid,
            "resourceVersion": live.resource_version.to_string(),
            "finalizers": others,
        } });
        let manager = Some(FIELD_MANAGER.to_owned());
        let parameters = PatchParams { field_manager: manager, ..PatchParams::default() };
        let patch = Patch::Merge(&body);
        let error = match trouble::within(api.patch(&address.name, &parameters, &patch)).await {
            Ok(object) => {
                // The last finalizer takes the object along; what comes back
                // then is its end, which the watch shows.
                if let Some(entry) = Entry::of(&object).filter(|entry| !entry.finalizers.is_empty())
                {
                    engine.kind(kind).index.brought(place_of(address), entry);
                }
                return Ok(());
            }
            Err(error) => error,
        };
        if !trouble::is_conflict(&error) {
            return unless_gone(engine, kind, address, &what, &error).await;
        }
        live = match observe::look(engine, kind, address).await.map_err(Error::Failed)? {
            Some(live) => live,
            None => return Ok(()),
        };
    }
    Err(Error::Failed(busy(&what)))
}

async fn unless_gone(
    engine: &CrossplaneSubstrate,
    kind: &CompositeType,
    address: &Address,
    what: &str,
    error: &kube::Error,
) -> Result<(), Error> {
    if trouble::is_gone(error, &kind.plural, &address.name) {
        return Ok(());
    }
    Err(Error::Failed(engine.refused(what, error).await))
}

/// Where a rendered composite goes, by what it says of itself.
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

fn busy(what: &str) -> String {
    format!("could not {what}: somebody else keeps writing it; it is tried again")
}

fn no_type(address: &Address) -> Error {
    Error::Failed(format!(
        "the blueprint of {} has no composite type; publish a version of it from its XRD",
        shown(address)
    ))
}
