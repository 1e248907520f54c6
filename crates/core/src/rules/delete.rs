//! Asking for the deletion of a resource: one `Deletion` record, the first
//! teardown phase, the announcement and the revoked token, all at once.

use serde_json::json;

use crate::audit::{Actor, AuditEntry, Subject};
use crate::commit::{Commit, Write};
use crate::deletion::{Deletion, DeletionState, Member};
use crate::error::Refusal;
use crate::event::{Event, EventType};
use crate::ids::{DeletionId, ProvisionedResourceId, ResourceId, Revision};
use crate::provisioned_resource::DeletionRequest;
use crate::resource::Resource;
use crate::snapshot::ResourceSnapshot;
use crate::text::Reason;
use crate::token::BootstrapToken;

/// What deletion a request led to; the second request gets the first's.
#[derive(Debug, Clone, PartialEq)]
pub struct Requested {
    pub deletion_id: DeletionId,
    pub commit: Commit,
}

/// Accepts the deletion, or answers with the one that is under way.
pub fn request(
    snapshot: &ResourceSnapshot,
    deletion_id: DeletionId,
    reason: &Reason,
    actor: &Actor,
) -> Result<Requested, Refusal> {
    let leaving = match snapshot.attempt.request_deletion(snapshot.now) {
        DeletionRequest::Accepted(leaving) => *leaving,
        DeletionRequest::AlreadyLeaving => {
            // A leaving attempt always has its deletion: both were written at once.
            let existing = snapshot.resource.deletion_id.unwrap_or(deletion_id);
            return Ok(Requested { deletion_id: existing, commit: Commit::default() });
        }
    };
    let now = snapshot.now;
    let deletion = Deletion {
        id: deletion_id,
        kind: ResourceId::KIND.to_owned(),
        target_id: snapshot.resource.id.as_uuid(),
        state: DeletionState::Running,
        requested_by: actor.name.clone(),
        reason: reason.as_str().to_owned(),
        members: vec![
            Member { kind: ResourceId::KIND.to_owned(), id: snapshot.resource.id.as_uuid() },
            Member { kind: ProvisionedResourceId::KIND.to_owned(), id: leaving.id().as_uuid() },
        ],
        revision: Revision::FIRST,
        requested_at: now,
        done_at: None,
        // Grace is 0: the substrate is touched at once, and that has no way back.
        restorable_until: None,
    };
    let revision = leaving.revision().next();
    let subject = Subject {
        kind: ResourceId::KIND,
        id: snapshot.resource.id.as_uuid(),
        project_id: snapshot.resource.project_id,
        revision,
    };
    let mut commit = Commit {
        events: vec![Event::announce(EventType::Deleting, &leaving, revision, now)],
        audit: vec![
            AuditEntry::new("resource.delete", actor, subject, now)
                .because(reason.as_str())
                .with(json!({ "deletion_id": deletion_id, "phase": snapshot.attempt.phase() })),
        ],
        wakes: vec![leaving.id()],
        writes: vec![
            Write::DeletionInsert(deletion),
            Write::ResourceUpdate(Resource {
                deletion_id: Some(deletion_id),
                ..snapshot.resource.clone()
            }),
            Write::HistoryAppend {
                attempt: leaving.id(),
                at: now,
                from: Some(snapshot.attempt.phase()),
                to: leaving.phase(),
                why: format!("deletion requested by {}", actor.name),
            },
            Write::AttemptUpdate(leaving),
        ],
    };
    // Nobody may enrol for what is going away.
    if let Some(token) =
        snapshot.token.as_ref().filter(|t| t.consumed.is_none() && t.revoked_at.is_none())
    {
        commit
            .writes
            .push(Write::TokenUpdate(BootstrapToken { revoked_at: Some(now), ..token.clone() }));
    }
    Ok(Requested { deletion_id, commit })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::fixtures::{mk_actor, mk_snapshot, mk_token};
    use crate::phase::Phase;

    fn ask(snapshot: &ResourceSnapshot) -> Requested {
        let id = DeletionId::new(Uuid::from_u128(500));
        request(snapshot, id, &Reason::parse("no longer needed").unwrap(), &mk_actor()).unwrap()
    }

    /// Invariant 9: the unconsumed token goes with the request.
    #[test]
    fn asking_for_deletion_revokes_the_unconsumed_token() {
        let mut snapshot = mk_snapshot(Phase::Enrolling);
        snapshot.token = Some(mk_token(1_000, 1_100, 2_000));
        let requested = ask(&snapshot);
        let revoked = requested.commit.writes.iter().any(
            |write| matches!(write, Write::TokenUpdate(token) if token.revoked_at == Some(snapshot.now)),
        );
        assert!(revoked);
        assert_eq!(requested.commit.events[0].event_type, EventType::Deleting);
    }

    #[test]
    fn a_second_request_answers_with_the_first_deletion_and_writes_nothing() {
        let first = DeletionId::new(Uuid::from_u128(400));
        for phase in [Phase::Deregistering, Phase::Deprovisioning, Phase::Deleted] {
            let mut snapshot = mk_snapshot(phase);
            snapshot.resource.deletion_id = Some(first);
            let requested = ask(&snapshot);
            assert_eq!(requested.deletion_id, first);
            assert!(requested.commit.is_empty());
        }
    }

    #[test]
    fn a_failed_resource_can_be_deleted() {
        let requested = ask(&mk_snapshot(Phase::Failed));
        assert!(requested.commit.writes.iter().any(
            |write| matches!(write, Write::AttemptUpdate(attempt) if attempt.phase() == Phase::Deregistering)
        ));
    }
}
