//! Replacing a resource: its attempt is taken down in order, and another one follows it in
//! the same slot, as declared or with corrections. It takes away what runs, so it passes the
//! door that a deletion passes: protection and the brake.

use crate::access::audit::Actor;
use crate::broker::attempt::DeletionRequest;
use crate::broker::redeclare::{self, Corrections, RedeclareSnapshot};
use crate::broker::snapshot::ResourceSnapshot;
use crate::broker::surge;
use crate::broker::teardown::{Order, Scope};
use crate::broker::update::{leaving, scheduled};
use crate::deletion::door::{Ask, Defaults, Door, Doored, Passed, Requested, Taking};
use crate::error::{ErrorKind, Refusal};
use crate::precondition::Expected;
use crate::subject::SubjectKind;
use crate::topology::owner::{self, Verb};

/// Accepts the replacement of a resource that no workspace owns, see [`accept`].
pub fn request(
    snapshot: &Doored<RedeclareSnapshot>,
    corrections: &Corrections,
    ask: &Ask,
    actor: &Actor,
) -> Result<Requested, Refusal> {
    owner::check(&snapshot.of.resource, Verb::Replace)?;
    accept(snapshot, corrections, ask, actor)
}

/// Accepts the replacement in every phase that is not leaving. It begins at once: what is
/// asked for is the resource, and grace would only delay it.
pub(crate) fn accept(
    snapshot: &Doored<RedeclareSnapshot>,
    corrections: &Corrections,
    ask: &Ask,
    actor: &Actor,
) -> Result<Requested, Refusal> {
    let RedeclareSnapshot { resource, project, declared } = &snapshot.of;
    stays(resource, ask.expected)?;
    let DeletionRequest::Accepted(gone) = resource.attempt.request_deletion(resource.now) else {
        return Err(leaving(resource));
    };
    let redeclared = redeclare::check(resource, project, declared, corrections)?;
    match pass(&snapshot.door, resource, ask, actor)? {
        Passed::Begins(_) => {}
        Passed::Stopped(requested) => return Ok(*requested),
    }
    let order = Order {
        scope: Scope::Attempt,
        deletion_id: ask.deletion_id,
        reason: &ask.reason,
        actor,
        verb: "resource.replace",
        retention: snapshot.door.defaults.retention,
        purge_protected: false,
        resources: 1,
    };
    let commit = redeclare::take_down(resource, *gone, &redeclared, order);
    Ok(Requested::new(ask.deletion_id, commit))
}

/// Refuses a resource that is as the caller does not expect, or deleted.
pub(crate) fn exists(snapshot: &ResourceSnapshot, expected: Expected) -> Result<(), Refusal> {
    let resource = &snapshot.resource;
    expected.check("resource", resource.revision)?;
    if resource.deleted_at.is_some() {
        let message = format!("resource {} is deleted; declare it again", resource.id);
        return Err(Refusal::new(ErrorKind::ResourceNotFound, message));
    }
    Ok(())
}

/// Refuses what is scheduled for deletion, too, and what has two attempts.
pub(crate) fn stays(snapshot: &ResourceSnapshot, expected: Expected) -> Result<(), Refusal> {
    exists(snapshot, expected)?;
    scheduled(snapshot).map_or(Ok(()), Err)?;
    surge::check_none(snapshot)
}

pub(crate) fn pass(
    door: &Door,
    resource: &ResourceSnapshot,
    ask: &Ask,
    actor: &Actor,
) -> Result<Passed, Refusal> {
    // A second person approves what does not come back; this does.
    let defaults = Defaults { retention: door.defaults.retention, ..Defaults::default() };
    let door = Door { defaults, ..door.clone() };
    let name = &*resource.resource.handle.to_string();
    let taking = Taking { kind: SubjectKind::Resource, name, resources: 1 };
    door.pass(ask, taking, actor, resource.now)
}

#[cfg(test)]
mod tests;
