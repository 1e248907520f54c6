//! Requesting the deletion of a resource.

use crate::access::audit::Actor;
use crate::broker::attempt::DeletionRequest;
use crate::broker::snapshot::ResourceSnapshot;
use crate::broker::teardown::{self, Order, Scope};
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::record::{Deletion, DeletionState};
use crate::error::Refusal;
use crate::ids::DeletionId;
use crate::text::Reason;

/// The deletion that a request led to; a second request gets the first one.
#[derive(Debug, Clone, PartialEq)]
pub struct Requested {
    pub deletion_id: DeletionId,
    pub commit: Commit,
}

/// Accepts the deletion, or returns the one that is running. The teardown of a
/// retry becomes a deletion of the whole resource.
pub fn request(
    snapshot: &ResourceSnapshot,
    deletion_id: DeletionId,
    reason: &Reason,
    actor: &Actor,
) -> Result<Requested, Refusal> {
    let order =
        Order { scope: Scope::Resource, deletion_id, reason, actor, verb: "resource.delete" };
    if let DeletionRequest::Accepted(leaving) = snapshot.attempt.request_deletion(snapshot.now) {
        let commit = teardown::begin(snapshot, *leaving, order);
        return Ok(Requested { deletion_id, commit });
    }
    match &snapshot.deletion {
        Some(retrying) if Scope::of(retrying) == Scope::Attempt => {
            let revision = snapshot.resource.revision.next();
            let mut commit = teardown::order_only(snapshot, order, revision, None);
            commit.writes.push(Write::Deletion(DeletionWrite::DeletionUpdate(Deletion {
                state: DeletionState::Cancelled,
                ..retrying.clone()
            })));
            Ok(Requested { deletion_id, commit })
        }
        // An attempt in teardown always has its deletion: one commit wrote both.
        under_way => {
            let existing = under_way.as_ref().map_or(deletion_id, |deletion| deletion.id);
            Ok(Requested { deletion_id: existing, commit: Commit::default() })
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::broker::phase::Phase;
    use crate::broker::{BrokerWrite, event};
    use crate::fixtures::{mk_actor, mk_deletion, mk_snapshot, mk_token};
    use crate::nodes::NodesWrite;

    fn ask(snapshot: &ResourceSnapshot) -> Requested {
        let id = DeletionId::new(Uuid::from_u128(500));
        request(snapshot, id, &Reason::parse("no longer needed").unwrap(), &mk_actor()).unwrap()
    }

    /// Invariant 9: the request revokes the unconsumed token.
    #[test]
    fn asking_for_deletion_revokes_the_unconsumed_token() {
        let mut snapshot = mk_snapshot(Phase::Enrolling);
        snapshot.token = Some(mk_token(1_000, 1_100, 2_000));
        let requested = ask(&snapshot);
        let revoked = requested.commit.writes.iter().any(
            |write| matches!(write, Write::Nodes(NodesWrite::TokenUpdate(token)) if token.revoked_at == Some(snapshot.now)),
        );
        assert!(revoked);
        assert_eq!(requested.commit.events[0].event_type, event::DELETING);
    }

    #[test]
    fn a_second_request_answers_with_the_first_deletion_and_writes_nothing() {
        for phase in [Phase::Deregistering, Phase::Deprovisioning, Phase::Deleted] {
            let mut snapshot = mk_snapshot(phase);
            let first = mk_deletion(&snapshot);
            snapshot.resource.deletion_id = Some(first.id);
            snapshot.deletion = Some(first.clone());
            let requested = ask(&snapshot);
            assert_eq!(requested.deletion_id, first.id);
            assert!(requested.commit.is_empty());
        }
    }

    #[test]
    fn a_failed_resource_can_be_deleted() {
        let requested = ask(&mk_snapshot(Phase::Failed));
        assert!(requested.commit.writes.iter().any(
            |write| matches!(write, Write::Broker(BrokerWrite::AttemptUpdate(attempt)) if attempt.phase() == Phase::Deregistering)
        ));
    }

    #[test]
    fn deleting_what_is_being_retried_takes_the_whole_resource() {
        let mut snapshot = mk_snapshot(Phase::Deprovisioning);
        let retrying = Deletion { target: snapshot.attempt.id().into(), ..mk_deletion(&snapshot) };
        snapshot.resource.deletion_id = Some(retrying.id);
        snapshot.deletion = Some(retrying.clone());
        let requested = ask(&snapshot);
        assert_ne!(requested.deletion_id, retrying.id);
        let [
            Write::Deletion(DeletionWrite::DeletionInsert(new)),
            Write::Broker(BrokerWrite::ResourceUpdate(resource)),
            Write::Deletion(DeletionWrite::DeletionUpdate(old)),
        ] = &requested.commit.writes[..]
        else {
            panic!("{:?}", requested.commit)
        };
        assert_eq!(Scope::of(new), Scope::Resource);
        assert_eq!(resource.deletion_id, Some(new.id));
        assert_eq!((old.id, old.state), (retrying.id, DeletionState::Cancelled));
        assert!(requested.commit.events.is_empty(), "it was announced already");
    }
}
