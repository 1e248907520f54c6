//! Replacing a resource: its attempt is taken down in order, and another one follows it in
//! the same slot, as declared or with corrections. It takes away what runs, so it passes the
//! door that a deletion passes: protection and the brake.

use crate::access::audit::Actor;
use crate::broker::attempt::DeletionRequest;
use crate::broker::redeclare::{self, Corrections, RedeclareSnapshot};
use crate::broker::teardown::{Order, Scope};
use crate::broker::update::{leaving, scheduled};
use crate::deletion::door::{Ask, Defaults, Door, Doored, Passed, Requested, Taking};
use crate::error::{ErrorKind, Refusal};
use crate::subject::SubjectKind;

/// Accepts the replacement in every phase that is not leaving. It begins at once: what is
/// asked for is the resource, and grace would only delay it.
pub fn request(
    snapshot: &Doored<RedeclareSnapshot>,
    corrections: &Corrections,
    ask: &Ask,
    actor: &Actor,
) -> Result<Requested, Refusal> {
    let RedeclareSnapshot { resource, project, declared } = &snapshot.of;
    ask.expected.check("resource", resource.resource.revision)?;
    if resource.resource.deleted_at.is_some() {
        let message = format!("resource {} is deleted; declare it again", resource.resource.id);
        return Err(Refusal::new(ErrorKind::ResourceNotFound, message));
    }
    if let Some(refusal) = scheduled(resource) {
        return Err(refusal);
    }
    let DeletionRequest::Accepted(gone) = resource.attempt.request_deletion(resource.now) else {
        return Err(leaving(resource));
    };
    let redeclared = redeclare::check(resource, project, declared, corrections)?;
    // A second person approves what does not come back; this does.
    let retention = snapshot.door.defaults.retention;
    let defaults = Defaults { retention, ..Defaults::default() };
    let door = Door { defaults, ..snapshot.door.clone() };
    let name = &*resource.resource.handle.to_string();
    let taking = Taking { kind: SubjectKind::Resource, name, resources: 1 };
    match door.pass(ask, taking, actor, resource.now)? {
        Passed::Begins(_) => {}
        Passed::Stopped(requested) => return Ok(*requested),
    }
    let order = Order {
        scope: Scope::Attempt,
        deletion_id: ask.deletion_id,
        reason: &ask.reason,
        actor,
        verb: "resource.replace",
        retention,
        purge_protected: false,
        resources: 1,
    };
    let commit = redeclare::take_down(resource, *gone, redeclared, order);
    Ok(Requested::new(ask.deletion_id, commit))
}

#[cfg(test)]
mod tests;
