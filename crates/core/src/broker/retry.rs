//! Retry: takes the attempt that went wrong down in order and then makes a new
//! one for the same resource. The old attempt stays in the history.

use crate::access::audit::Actor;
use crate::blocker::BlockerCode;
use crate::broker::attempt::{DeletionRequest, InvalidAggregate, NewAttempt, ProvisionedResource};
use crate::broker::phase::Phase;
use crate::broker::snapshot::ResourceSnapshot;
use crate::broker::teardown::{self, Order, Scope};
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::event::derive_id;
use crate::ids::{DeletionId, ProvisionedResourceId};
use crate::text::Reason;

/// Accepts the retry of an attempt that cannot advance by itself.
pub fn request(
    snapshot: &ResourceSnapshot,
    deletion_id: DeletionId,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let stuck = |code| {
        use BlockerCode::{NodeLeft, NodeSilent, TokenCapReached};
        matches!(code, NodeLeft | NodeSilent | TokenCapReached)
    };
    let attempt = &snapshot.attempt;
    let retriable = attempt.phase() == Phase::Failed
        || snapshot.blockers.iter().any(|blocker| stuck(blocker.code));
    match attempt.request_deletion(snapshot.now) {
        DeletionRequest::Accepted(leaving) if retriable => {
            if let Some(placement) = &snapshot.placement {
                placement.serves(&snapshot.blueprint)?;
            }
            let order =
                Order { scope: Scope::Attempt, deletion_id, reason, actor, verb: "resource.retry" };
            Ok(teardown::begin(snapshot, *leaving, order))
        }
        DeletionRequest::Accepted(_) | DeletionRequest::AlreadyLeaving => Err(Refusal::new(
            ErrorKind::NothingToRetry,
            format!(
                "resource `{}` is {}; retry is for one that is Failed, or whose node left or \
                 never enrolled",
                snapshot.resource.handle,
                attempt.phase()
            ),
        )),
    }
}

/// The attempt that follows one that is gone: the same declaration, the next
/// number. Its id is derived, so a transaction that runs again creates the same.
pub(crate) fn successor(
    snapshot: &ResourceSnapshot,
) -> Result<ProvisionedResource, InvalidAggregate> {
    let gone = &snapshot.attempt;
    let id = derive_id(snapshot.now, &[b"attempt", gone.id().as_uuid().as_bytes()]);
    ProvisionedResource::declare(
        NewAttempt {
            id: ProvisionedResourceId::new(id),
            resource_id: gone.resource_id(),
            project_id: gone.project_id(),
            blueprint_version_id: gone.blueprint_version_id(),
            cloud_credential_id: gone.cloud_credential_id(),
            attempt: gone.attempt() + 1,
            parameter_values: gone.parameter_values().clone(),
            // The current placement of the project, which may be another cluster.
            partition: snapshot
                .placement
                .as_ref()
                .map_or(gone.partition(), |placement| placement.cluster_id.into()),
        },
        snapshot.now,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use uuid::Uuid;

    use super::*;
    use crate::blocker::Blocker;
    use crate::broker::BrokerWrite;
    use crate::catalog::blueprint_version::Engine;
    use crate::commit::Write;
    use crate::deletion::DeletionWrite;
    use crate::fixtures::{at, mk_actor, mk_snapshot};

    fn ask(snapshot: &ResourceSnapshot) -> Result<Commit, Refusal> {
        let id = DeletionId::new(Uuid::from_u128(500));
        request(snapshot, id, &Reason::parse("quota was raised").unwrap(), &mk_actor())
    }

    #[test]
    fn only_what_is_stuck_for_good_can_be_retried() {
        for &phase in Phase::ALL {
            let asked = ask(&mk_snapshot(phase));
            assert_eq!(asked.is_ok(), phase == Phase::Failed, "{phase}");
            if let Err(refusal) = asked {
                assert_eq!(refusal.kind, ErrorKind::NothingToRetry);
            }
        }
        let mut left = mk_snapshot(Phase::Enrolling);
        left.blockers.push(Blocker {
            code: BlockerCode::NodeLeft,
            message: String::new(),
            since: at(1),
            evidence: Value::Null,
            next_retry_at: None,
        });
        assert!(ask(&left).is_ok());
    }

    /// Otherwise the next attempt could neither converge nor be deleted.
    #[test]
    fn what_the_cluster_cannot_serve_is_not_tried_again() {
        let mut snapshot = mk_snapshot(Phase::Failed);
        snapshot.placement.as_mut().unwrap().engine = Engine::Crossplane;
        assert_eq!(ask(&snapshot).unwrap_err().kind, ErrorKind::EngineNotServed);
        snapshot.placement = None;
        assert!(ask(&snapshot).is_ok());
    }

    #[test]
    fn a_retry_takes_the_attempt_down_and_keeps_the_resource() {
        let snapshot = mk_snapshot(Phase::Failed);
        let commit = ask(&snapshot).unwrap();
        let Write::Deletion(DeletionWrite::DeletionInsert(deletion)) = &commit.writes[0] else {
            panic!("{commit:?}")
        };
        assert_eq!(Scope::of(deletion), Scope::Attempt);
        assert_eq!(deletion.target, snapshot.attempt.id().into());
        assert!(commit.writes.iter().any(
            |write| matches!(write, Write::Broker(BrokerWrite::AttemptUpdate(a)) if a.phase() == Phase::Deregistering)
        ));
    }
}
