//! Acts on servers: create, label, protect and delete.
//!
//! The API has no conditions: a write does not name a version. A request whose claim is over may
//! still arrive, seconds after a newer claim acted. Whatever it finds then:
//!
//! | what arrives late | the newer claim meanwhile | result |
//! |---|---|---|
//! | create | made the server | refused: the name is taken |
//! | | did nothing yet | the server is made; the create of the newer claim is refused, reads it and updates it, or, if it has another token, replaces it |
//! | | proved it absent, or deleted it | the server is made under the older claim: in a deletion the second proof finds and removes it; otherwise its token is not in place and the next tick replaces it |
//! | labels | wrote labels | the older labels are back: that is drift, or, if they are the same but for the claim, nothing |
//! | protection | deleted the server | refused: there is no such server |
//! | | cleared the protection in order to delete | the delete is refused as protected, and the next tick clears it again |
//! | delete | made the server anew | refused: ids are not used again |
//!
//! So no older claim changes which server there is, what it was made from and whether it goes.
//! Only labels and protection can be those of an older claim, for as long as it takes to observe
//! them: this engine reads before each write and stops where it finds a newer claim, but between
//! its read and its write nobody keeps another write out.
//!
//! A server reads its user data once, when it is made, so another token needs another server.
//! Core asks for one only where no node ever enrolled from it.

use slipway_app::ports::substrate::{Address, Error};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::nodes::token::Carried;
use slipway_render::hetzner::{Offer, ServerSpec};
use slipway_render::{RenderedComposite, composite};

use super::client::{Filter, Session};
use super::engine::{HetznerSubstrate, live};
use super::error::{ApiError, Reason, failed, not_written};
use super::labels;
use super::servers::{Creation, Known};
use super::shapes::{ActionStatus, Labels, NewServer, Server};

/// What the provider takes as user data, in bytes.
const USER_DATA_MAX: usize = 32 << 10;

/// A composite as this engine applies it.
struct Desired<'a> {
    rendered: &'a RenderedComposite,
    address: Address,
    spec: ServerSpec,
    labels: Labels,
}

impl<'a> Desired<'a> {
    fn of(rendered: &'a RenderedComposite) -> Result<Self, Error> {
        let object = rendered.expose_object();
        let spec = ServerSpec::of(object).map_err(|refusal| Error::Failed(refusal.to_string()))?;
        let owner = object["metadata"]["labels"][composite::LABEL_PROVISIONED_RESOURCE].as_str();
        let owner = owner.and_then(|text| text.parse().ok()).ok_or_else(|| {
            let name = rendered.name();
            Error::Failed(format!("the composite {name} names no provisioned resource"))
        })?;
        let address = Address {
            provisioned_resource_id: owner,
            namespace: rendered.namespace().to_owned(),
            name: rendered.name().to_owned(),
            composite_type: None,
            substrate_uid: rendered.substrate_uid().map(str::to_owned),
        };
        let labels = labels::desired(rendered, &spec);
        Ok(Self { rendered, address, spec, labels })
    }

    /// The live server was made with this token, or the composite names none.
    fn has_token(&self, live: &Server) -> bool {
        match composite::carried(self.rendered.expose_object()) {
            Carried::NoObject | Carried::Nothing => true,
            fresh @ Carried::Token { .. } => labels::carried(&live.labels) == fresh,
        }
    }

    fn is_so(&self, live: &Server) -> bool {
        labels::is_so(&live.labels, &self.labels)
            && live.protection.delete == self.spec.delete_protection
    }
}

/// *Expected flow:* if a server is known: stop where nothing differs, else read it, check whose
/// it is, write labels and protection → if none is: try each offer once, in order.
/// *Guarantees:* touches only servers of this resource, and none that a newer claim wrote.
pub(super) async fn apply(
    engine: &HetznerSubstrate,
    session: &Session,
    rendered: &RenderedComposite,
) -> Result<CompositeReport, Error> {
    let desired = Desired::of(rendered)?;
    match engine.known(session, &desired.address).await? {
        Some(known) => apply_to(engine, session, &desired, known).await,
        None => create(engine, session, &desired).await,
    }
}

async fn apply_to(
    engine: &HetznerSubstrate,
    session: &Session,
    desired: &Desired<'_>,
    known: Known,
) -> Result<CompositeReport, Error> {
    may_write(engine, &known.server, desired)?;
    let report = |known: &Known| CompositeReport::Present(Box::new(live(known)));
    let has_token = desired.has_token(&known.server);
    if has_token && desired.is_so(&known.server) {
        return Ok(report(&known));
    }
    // While it is locked only the labels could be written. The next tick finds it unlocked.
    let only_protection = labels::is_so(&known.server.labels, &desired.labels);
    if has_token && only_protection && known.server.locked {
        return Ok(report(&known));
    }
    let id = known.server.id;
    let Some(server) = session.server(id).await.map_err(failed)? else {
        engine.servers.gone(id);
        let problem = "the server went meanwhile; it is made again once it is proven absent";
        return Err(Error::Failed(problem.to_owned()));
    };
    let mut known = Known { server, ..known };
    engine.servers.answered(known.server.clone(), None);
    may_write(engine, &known.server, desired)?;
    if !desired.has_token(&known.server) {
        tracing::info!(
            server = id,
            "a server whose node never enrolled has a token that is not in place, and is replaced"
        );
        remove(engine, session, &known.server).await?;
        Server::DELETING.clone_into(&mut known.server.status);
        return Ok(report(&known));
    }
    if !labels::lasts(&known.server.labels, &desired.labels) {
        return Err(Error::Failed(format!(
            "the server {} ({id}) keeps its type, location, image, placement group and SSH keys for life; replace the resource to change them: slipway resource replace",
            known.server.name
        )));
    }
    if !labels::is_so(&known.server.labels, &desired.labels) {
        let labels = labels::merged(&known.server.labels, &desired.labels);
        let write = async |session: &Session| session.server_label(id, labels).await;
        known.server = engine.permitted(session, write).await.map_err(not_written)?;
        engine.servers.answered(known.server.clone(), None);
    }
    if known.server.protection.delete != desired.spec.delete_protection {
        protect(engine, session, &mut known.server, desired.spec.delete_protection).await?;
    }
    Ok(report(&known))
}

/// Whether this claim may write the live server.
fn may_write(
    engine: &HetznerSubstrate,
    server: &Server,
    desired: &Desired<'_>,
) -> Result<(), Error> {
    if let Some(reason) = engine.another(server, &desired.address) {
        return Err(Error::Conflict(reason));
    }
    let ours = desired.rendered.claim_token();
    if let Some(found) = labels::claim_token(&server.labels).filter(|found| *found > ours) {
        return Err(Error::Superseded { ours, found });
    }
    if server.status == Server::DELETING {
        return Err(Error::Conflict(format!(
            "the server {} is being deleted; apply again when it is gone",
            server.name
        )));
    }
    Ok(())
}

/// Sets or clears the protection. A server that is locked is left as it is: that is drift, and
/// the next tick tries again.
async fn protect(
    engine: &HetznerSubstrate,
    session: &Session,
    server: &mut Server,
    protect: bool,
) -> Result<(), Error> {
    let id = server.id;
    let write = async |session: &Session| session.server_protect(id, protect).await;
    match engine.permitted(session, write).await {
        Ok(action) if action.status == ActionStatus::Error => {
            let said = action.error.map(|error| error.message).unwrap_or_default();
            Err(Error::Failed(format!("the protection of server {id} was not changed: {said}")))
        }
        Ok(_) => {
            server.protection.delete = protect;
            engine.servers.answered(server.clone(), None);
            Ok(())
        }
        Err(error) if error.reason == Reason::Busy => Ok(()),
        Err(error) => Err(not_written(error)),
    }
}

/// Tries each offer at most once, but for those that were exhausted a moment ago.
async fn create(
    engine: &HetznerSubstrate,
    session: &Session,
    desired: &Desired<'_>,
) -> Result<CompositeReport, Error> {
    let user_data = desired.rendered.expose_object()["spec"]["userData"].as_str();
    if user_data.is_some_and(|text| text.len() > USER_DATA_MAX) {
        let problem = format!("the cloud-init document is longer than {USER_DATA_MAX} bytes");
        return Err(Error::Failed(problem));
    }
    let placement_group = match &desired.spec.placement_group {
        None => None,
        Some(name) => Some(placement_group(session, name).await?),
    };
    let new = |offer: &Offer| NewServer {
        name: desired.address.name.clone(),
        server_type: offer.server_type.clone(),
        location: offer.location.clone(),
        image: desired.spec.image.clone(),
        placement_group,
        ssh_keys: desired.spec.ssh_keys.clone(),
        user_data: user_data.map(str::to_owned),
        labels: desired.labels.clone(),
    };
    let mut lacking = Vec::new();
    for offer in desired.spec.offers() {
        // The text has no time, so that a blocker stays the same until something changes.
        if let Some(said) = engine.exhausted.of(&offer) {
            lacking.push(format!("{offer}: {said}"));
            continue;
        }
        let new = new(&offer);
        let made = engine.permitted(session, async |session| session.server_create(&new).await);
        match made.await {
            Ok(made) => {
                let creation = match made.action.status {
                    ActionStatus::Running => Creation::Running { action: made.action.id },
                    ActionStatus::Success => Creation::Done,
                    ActionStatus::Error => Creation::Failed(failure(made.action.error)),
                };
                let known = Known { server: made.server, creation };
                engine.servers.answered(known.server.clone(), Some(known.creation.clone()));
                // Protected by the next tick: until it is made, it is locked.
                return Ok(CompositeReport::Present(Box::new(live(&known))));
            }
            Err(ApiError { reason: Reason::NoCapacity, message }) => {
                tracing::info!(%offer, message, "the provider has no capacity for a server");
                engine.exhausted.note(&offer, &message);
                lacking.push(format!("{offer}: {message}"));
            }
            Err(error) if error.reason == Reason::NotUnique => {
                return existing(engine, session, desired, error).await;
            }
            Err(error) => return Err(not_written(error)),
        }
    }
    Err(Error::NoCapacity(format!(
        "the provider has no capacity for this server: {}",
        lacking.join("; ")
    )))
}

fn failure(error: Option<super::shapes::ActionError>) -> String {
    error.map_or_else(String::new, |error| format!("{}: {}", error.code, error.message))
}

/// An earlier create made the server, and its answer was lost.
async fn existing(
    engine: &HetznerSubstrate,
    session: &Session,
    desired: &Desired<'_>,
    refused: ApiError,
) -> Result<CompositeReport, Error> {
    let filter = Filter { name: Some(&desired.address.name), ..Filter::default() };
    let found = session.servers(filter, 1).await.map_err(failed)?.items.into_iter().next();
    let Some(server) = found else { return Err(failed(refused)) };
    engine.servers.answered(server.clone(), None);
    let known = Known { server, creation: Creation::Unknown };
    apply_to(engine, session, desired, known).await
}

async fn placement_group(session: &Session, name: &str) -> Result<u64, Error> {
    let filter = Filter { name: Some(name), ..Filter::default() };
    let found = session.placement_groups(filter).await.map_err(failed)?;
    found.first().map(|group| group.id).ok_or_else(|| {
        Error::Failed(format!(
            "there is no placement group {name} in the project: hcloud placement-group create --type spread --name {name}"
        ))
    })
}

/// *Expected flow:* read by id → check whose it is → clear the protection → delete.
/// *Guarantees:* deletes only a server of this installation with this id, in the registered
/// project. It is asked for only after every gate passed, so the protection at the provider,
/// which mirrors ours, is cleared here and nowhere else.
pub(super) async fn delete(
    engine: &HetznerSubstrate,
    session: &Session,
    address: &Address,
    uid: &str,
) -> Result<(), Error> {
    let id = uid.parse().map_err(|_| Error::Conflict(format!("{uid} is no id of a server")))?;
    let Some(server) = session.server(id).await.map_err(failed)? else {
        // A token of another project would answer the same.
        engine.same_project(session, address.substrate_uid.as_deref()).await?;
        engine.servers.gone(id);
        return Ok(());
    };
    if let Some(reason) = engine.foreign(&server) {
        return Err(Error::Conflict(reason));
    }
    engine.servers.answered(server.clone(), None);
    if server.status == Server::DELETING {
        return Ok(());
    }
    remove(engine, session, &server).await
}

async fn remove(
    engine: &HetznerSubstrate,
    session: &Session,
    server: &Server,
) -> Result<(), Error> {
    let id = server.id;
    if server.protection.delete {
        let clear = async |session: &Session| session.server_protect(id, false).await;
        engine.permitted(session, clear).await.map_err(not_written)?;
    }
    match engine.permitted(session, async |session| session.server_delete(id).await).await {
        Ok(()) => {
            engine.servers.deleting(id);
            Ok(())
        }
        // Somebody else was faster; the next observation proves it.
        Err(error) if error.reason == Reason::NotFound => {
            engine.servers.gone(id);
            Ok(())
        }
        Err(error) => Err(not_written(error)),
    }
}
