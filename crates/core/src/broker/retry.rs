//! Retry: takes the attempt that went wrong down in order and then makes a new
//! one for the same resource, as declared or with corrections. The old attempt stays
//! on record with its reason.

use std::time::Duration;

use crate::access::audit::Actor;
use crate::blocker::{Blocker, BlockerCode};
use crate::broker::BrokerWrite;
use crate::broker::attempt::{
    Beside, Correction, DeletionRequest, Failure, InvalidAggregate, NewAttempt, ProvisionedResource,
};
use crate::broker::phase::Phase;
use crate::broker::redeclare::{self, Corrections, RedeclareSnapshot};
use crate::broker::snapshot::ResourceSnapshot;
use crate::broker::surge;
use crate::broker::teardown::{self, Order, Scope};
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::event::derive_id;
use crate::ids::{DeletionId, Partition, ProvisionedResourceId};
use crate::text::Reason;
use crate::topology::owner::{self, Verb};

/// Accepts the retry of an attempt that cannot advance by itself, as it was declared.
/// `retention` says how long the attempt is kept once it is gone.
pub fn request(
    snapshot: &ResourceSnapshot,
    deletion_id: DeletionId,
    retention: Duration,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    owner::check(snapshot, Verb::Retry)?;
    let snapshot = surge::to_retry(snapshot)?;
    let (leaving, failure) = stuck(snapshot)?;
    if let Some(placement) = &snapshot.placement {
        placement.serves(&snapshot.blueprint)?;
    }
    let mut commit =
        teardown::begin(snapshot, leaving, order(deletion_id, retention, reason, actor));
    commit.writes.extend(failure);
    Ok(commit)
}

const fn order<'a>(
    deletion_id: DeletionId,
    retention: Duration,
    reason: &'a Reason,
    actor: &'a Actor,
) -> Order<'a> {
    Order {
        scope: Scope::Attempt,
        deletion_id,
        reason,
        actor,
        verb: "resource.retry",
        retention,
        purge_protected: false,
        resources: 0,
    }
}

/// The same with corrections, which are checked like a declaration.
pub fn request_corrected(
    snapshot: &RedeclareSnapshot,
    corrections: &Corrections,
    deletion_id: DeletionId,
    retention: Duration,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let RedeclareSnapshot { resource, project, declared } = snapshot;
    owner::check(resource, Verb::Retry)?;
    let resource = surge::to_retry(resource)?;
    let (leaving, failure) = stuck(resource)?;
    let redeclared = redeclare::check(resource, project, declared, corrections)?;
    let order = order(deletion_id, retention, reason, actor);
    let mut commit = redeclare::take_down(resource, leaving, &redeclared, order);
    commit.writes.extend(failure);
    Ok(commit)
}

/// The attempt on its way out, and the record of its failure if it has none yet.
fn stuck(snapshot: &ResourceSnapshot) -> Result<(ProvisionedResource, Option<Write>), Refusal> {
    let attempt = &snapshot.attempt;
    let given_up = |blocker: &&Blocker| {
        use BlockerCode::{NodeLeft, NodeSilent, TokenCapReached};
        matches!(blocker.code, NodeLeft | NodeSilent | TokenCapReached)
    };
    let given_up = snapshot.blockers.iter().find(given_up);
    match (attempt.request_deletion(snapshot.now), given_up) {
        (DeletionRequest::Accepted(leaving), _) if attempt.phase() == Phase::Failed => {
            Ok((*leaving, None))
        }
        (DeletionRequest::Accepted(leaving), Some(blocker)) => {
            let observed = snapshot.observed.clone().unwrap_or_default();
            let failure = Failure { at: snapshot.now, observed };
            let failure = BrokerWrite::FailureRecord(attempt.id(), failure);
            let leaving = leaving.failed_because(Some(blocker.message.clone()));
            Ok((leaving, Some(Write::Broker(failure))))
        }
        (DeletionRequest::Accepted(_) | DeletionRequest::AlreadyLeaving, _) => {
            Err(not_stuck(snapshot))
        }
    }
}

fn not_stuck(snapshot: &ResourceSnapshot) -> Refusal {
    let (handle, phase) = (&snapshot.resource.handle, snapshot.attempt.phase());
    let token = snapshot.token.as_ref().filter(|token| token.is_usable(snapshot.now));
    let message = match token.filter(|_| phase == Phase::Enrolling) {
        // The loop extends a token, but not one that a person has.
        Some(token) => format!(
            "resource `{handle}` is Enrolling, and its node can still enrol: its bootstrap token \
             is good until {}; wait for that, or `slipway resource delete` and declare it again",
            if token.issued_by.is_some() { token.expires_at } else { token.hard_expires_at }
        ),
        None => format!(
            "resource `{handle}` is {phase}; retry is for one that is Failed, or that shows \
             node_left, node_silent or token_cap_reached"
        ),
    };
    Refusal::new(ErrorKind::NothingToRetry, message)
}

/// What the successor does differently, for the event and the audit.
pub(crate) fn changed(gone: &ProvisionedResource) -> Vec<String> {
    gone.correction().map(|correction| redeclare::changed(gone, correction)).unwrap_or_default()
}

/// The attempt that follows one that is gone: the same declaration, or the corrected
/// one, and the next number. Its id is derived, so a transaction that runs again creates the same.
pub(crate) fn successor(
    snapshot: &ResourceSnapshot,
) -> Result<ProvisionedResource, InvalidAggregate> {
    let gone = &snapshot.attempt;
    let Correction { blueprint_version_id, parameter_values } =
        gone.correction().cloned().unwrap_or_else(|| Correction {
            blueprint_version_id: gone.blueprint_version_id(),
            parameter_values: gone.parameter_values().clone(),
        });
    let id = derive_id(snapshot.now, &[b"attempt", gone.id().as_uuid().as_bytes()]);
    ProvisionedResource::declare(
        NewAttempt {
            id: ProvisionedResourceId::new(id),
            resource_id: gone.resource_id(),
            project_id: gone.project_id(),
            blueprint_version_id,
            cloud_credential_id: gone.cloud_credential_id(),
            attempt: snapshot.latest.max(gone.attempt()) + 1,
            parameter_values,
            partition: partition(snapshot),
            // Gone is gone: the name of its node is free.
            beside: gone
                .hostname()
                .filter(|_| !gone.is_in_use())
                .map(|hostname| Beside { hostname: hostname.to_owned() }),
        },
        snapshot.now,
    )
}

/// The current placement of the project, which may be another cluster.
pub(crate) fn partition(snapshot: &ResourceSnapshot) -> Partition {
    let placed = snapshot.placement.as_ref().map(|placement| placement.cluster_id.into());
    placed.unwrap_or(snapshot.attempt.partition())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::broker::snapshot::{CredentialConflict, DeclareSnapshot};
    use crate::catalog::blueprint_version::{BlueprintVersion, Engine};
    use crate::deletion::DeletionWrite;
    use crate::fixtures::{at, mk_actor, mk_declare_snapshot, mk_snapshot, mk_token};
    use crate::ids::{BlueprintVersionId, ResourceId};
    use crate::nodes::token::BootstrapToken;

    fn ask(snapshot: &ResourceSnapshot) -> Result<Commit, Refusal> {
        let id = DeletionId::new(Uuid::from_u128(500));
        request(
            snapshot,
            id,
            Duration::ZERO,
            &Reason::parse("quota was raised").unwrap(),
            &mk_actor(),
        )
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

    /// The refusal is true of one whose node never enrolled, too.
    #[test]
    fn a_retry_waits_until_no_token_can_be_used() {
        let mut snapshot = mk_snapshot(Phase::Enrolling);
        let mut token = mk_token(900, 2_000, 9_000);
        token.issued_by = Some("key:test".to_owned());
        snapshot.token = Some(token.clone());
        let refusal = ask(&snapshot).unwrap_err();
        assert!(refusal.message.contains(&at(2_000).to_string()), "{refusal}");
        assert!(!refusal.message.contains("never enrolled"), "{refusal}");
        snapshot.token = Some(BootstrapToken { issued_by: None, ..token });
        let refusal = ask(&snapshot).unwrap_err();
        assert!(refusal.message.contains(&at(9_000).to_string()), "{refusal}");
        snapshot.now = at(2_000);
        let refusal = ask(&snapshot).unwrap_err();
        assert!(refusal.message.contains("token_cap_reached"), "{refusal}");
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
        let inserted = commit.writes.iter().find_map(|write| match write {
            Write::Deletion(DeletionWrite::DeletionInsert(deletion)) => Some(deletion),
            _ => None,
        });
        let deletion = inserted.unwrap();
        assert_eq!(Scope::of(deletion), Scope::Attempt);
        assert_eq!(deletion.target, snapshot.attempt.id().into());
        assert!(commit.writes.iter().any(
            |write| matches!(write, Write::Broker(BrokerWrite::AttemptUpdate(a)) if a.phase() == Phase::Deregistering)
        ));
    }

    /// An attempt that was given up without having failed says why, like one that failed.
    #[test]
    fn what_was_given_up_keeps_its_reason_and_what_was_observed() {
        let mut snapshot = mk_snapshot(Phase::Enrolling);
        snapshot.observed = Some(json!({ "node": "absent" }));
        snapshot.blockers.push(Blocker {
            code: BlockerCode::NodeLeft,
            message: "the node left".to_owned(),
            since: at(1),
            evidence: Value::Null,
            next_retry_at: None,
        });
        let commit = ask(&snapshot).unwrap();
        let failure = commit.writes.iter().find_map(|write| match write {
            Write::Broker(BrokerWrite::FailureRecord(_, failure)) => Some(failure.clone()),
            _ => None,
        });
        let observed = json!({ "node": "absent" });
        assert_eq!(failure, Some(Failure { at: snapshot.now, observed }));
        assert_eq!(leaving(&commit).failure_reason(), Some("the node left"));
        // One that failed has both already.
        let failed = ask(&mk_snapshot(Phase::Failed)).unwrap();
        let records =
            |write: &Write| matches!(write, Write::Broker(BrokerWrite::FailureRecord(..)));
        assert!(!failed.writes.iter().any(records), "{failed:?}");
    }

    fn leaving(commit: &Commit) -> ProvisionedResource {
        let update = commit.writes.iter().find_map(|write| match write {
            Write::Broker(BrokerWrite::AttemptUpdate(attempt)) => Some(attempt.clone()),
            _ => None,
        });
        update.unwrap()
    }

    fn corrected(declared: DeclareSnapshot, corrections: &Value) -> Result<Commit, Refusal> {
        let corrections: BTreeMap<String, Value> =
            serde_json::from_value(corrections.clone()).unwrap();
        let version = corrections.get("version").and_then(Value::as_str).map(str::to_owned);
        let mut parameters = corrections;
        parameters.remove("version");
        let resource = mk_snapshot(Phase::Failed);
        let snapshot = RedeclareSnapshot { resource, project: "default".to_owned(), declared };
        let id = DeletionId::new(Uuid::from_u128(500));
        let reason = Reason::parse("a typo").unwrap();
        request_corrected(
            &snapshot,
            &Corrections { version, parameters },
            id,
            Duration::ZERO,
            &reason,
            &mk_actor(),
        )
    }

    #[test]
    fn a_corrected_retry_says_what_changes_and_the_successor_has_it() {
        let declared = mk_declare_snapshot();
        let newer = BlueprintVersion {
            id: BlueprintVersionId::new(Uuid::from_u128(99)),
            version: "v2".to_owned(),
            ..declared.blueprint.clone().unwrap()
        };
        let declared = DeclareSnapshot { blueprint: Some(newer.clone()), ..declared };
        let asked = json!({ "version": "v2", "busy_seconds": 7 });
        let commit = corrected(declared, &asked).unwrap();
        let changed = json!({
            "parameters": ["busy_seconds"], "version": { "from": "v1", "to": "v2" },
        });
        assert_eq!(commit.audit[0].details["changed"], changed);
        assert_eq!(commit.audit[0].verb, "resource.retry");

        let mut gone = mk_snapshot(Phase::Failed);
        gone.attempt = leaving(&commit);
        let next = successor(&gone).unwrap();
        assert_eq!(next.blueprint_version_id(), newer.id);
        assert_eq!(next.parameter_values().as_map()["busy_seconds"], 7);
        assert_eq!(super::changed(&gone.attempt), ["version", "parameters.busy_seconds"]);
    }

    /// Checked by the function that checks a declaration.
    #[test]
    fn a_correction_that_no_declaration_could_have_is_refused_by_field() {
        let good = mk_declare_snapshot;
        let nothing = json!({});
        let table = [
            (good(), json!({ "speed": 1 }), ErrorKind::ParameterValuesInvalid, "parameters.speed"),
            (
                good(),
                json!({ "busy_seconds": "x" }),
                ErrorKind::ParameterValuesInvalid,
                "parameters.busy_seconds",
            ),
            (
                good(),
                json!({ "busy_seconds": null }),
                ErrorKind::ParameterValuesInvalid,
                "parameters.busy_seconds",
            ),
            (
                DeclareSnapshot { blueprint: None, ..good() },
                json!({ "version": "v9" }),
                ErrorKind::BlueprintNotFound,
                "version",
            ),
            (
                DeclareSnapshot { blueprint_retired: true, ..good() },
                json!({ "version": "v0" }),
                ErrorKind::BlueprintVersionRetired,
                "version",
            ),
            (
                DeclareSnapshot {
                    blueprint: good().blueprint.map(|blueprint| BlueprintVersion {
                        engine: Engine::Crossplane,
                        ..blueprint
                    }),
                    conflict: Some(CredentialConflict {
                        resource_id: ResourceId::new(Uuid::from_u128(7)),
                        credential: "other".to_owned(),
                    }),
                    ..good()
                },
                json!({ "version": "v2" }),
                ErrorKind::ProviderConfigConflict,
                "version",
            ),
            (
                DeclareSnapshot { placement: None, ..good() },
                nothing,
                ErrorKind::AssignmentNotFound,
                "project",
            ),
        ];
        for (declared, asked, kind, field) in table {
            let refusal = corrected(declared, &asked).unwrap_err();
            assert_eq!((refusal.kind, refusal.field.as_deref()), (kind, Some(field)), "{asked}");
        }
    }
}
