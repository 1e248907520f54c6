//! Bootstrap tokens by hand: issuing one for an attempt that waits for its
//! node, and revoking one.
//!
//! The loop puts a token into the object that it applies. A person needs
//! another one where that token cannot be used: the machine lost it, it reached
//! its cap, or the node is started by hand. An attempt records one token, so
//! the same transaction revokes the one before, and the loop leaves the new one
//! alone until it expires (see [`crate::nodes::token::decide_token`]).

use std::time::Duration;

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::BrokerWrite;
use crate::broker::phase::{NodeFact, Phase};
use crate::broker::snapshot::ResourceSnapshot;
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{BootstrapTokenId, Revision};
use crate::nodes::NodesWrite;
use crate::nodes::token::{BootstrapToken, SecretHash, TokenKind};

/// Bounds of the lifetime of a token: those of plexd.
pub const LIFETIME_MIN: Duration = Duration::from_secs(300);
pub const LIFETIME_MAX: Duration = Duration::from_secs(24 * 3_600);

/// A token about to be issued.
#[derive(Debug, Clone, Copy)]
pub struct Issue {
    pub id: BootstrapTokenId,
    pub hash: SecretHash,
    pub kind: TokenKind,
    pub lifetime: Duration,
}

/// Issues a token for the attempt, if a node may still enrol for it.
pub fn issue(snapshot: &ResourceSnapshot, issue: Issue, actor: &Actor) -> Result<Commit, Refusal> {
    check_issue(&issue)?;
    check_waiting(snapshot)?;
    Ok(replace_token(snapshot, issue, actor))
}

/// Checks what the person asked for.
pub(crate) fn check_issue(issue: &Issue) -> Result<(), Refusal> {
    if issue.kind != TokenKind::Node {
        return Err(Refusal::invalid("kind", "must be `node`; bridges are not supported"));
    }
    if !(LIFETIME_MIN..=LIFETIME_MAX).contains(&issue.lifetime) {
        let (least, most) = (LIFETIME_MIN.as_secs(), LIFETIME_MAX.as_secs());
        return Err(Refusal::invalid("ttl_seconds", format!("must be from {least} to {most}")));
    }
    Ok(())
}

/// Inserts the token and makes it the one of the attempt; one that was not used ends.
pub(crate) fn replace_token(snapshot: &ResourceSnapshot, issue: Issue, actor: &Actor) -> Commit {
    let now = snapshot.now;
    let expires_at = now.plus(issue.lifetime);
    // The loop keeps the rest of the cap, in case this token is not used.
    let cap = snapshot.token.as_ref().map_or(expires_at, |token| token.hard_expires_at);
    let attempt = snapshot.attempt.with_bootstrap_token(issue.id);
    let mut commit = Commit::default();
    let unused = |token: &&BootstrapToken| token.consumed.is_none() && token.revoked_at.is_none();
    let replaced = snapshot.token.as_ref().filter(unused);
    if let Some(old) = replaced {
        let revoked = BootstrapToken { revoked_at: Some(now), ..old.clone() };
        commit.writes.push(Write::Nodes(NodesWrite::TokenUpdate(revoked)));
    }
    commit.writes.push(Write::Nodes(NodesWrite::TokenInsert(BootstrapToken {
        id: issue.id,
        project_id: attempt.project_id(),
        provisioned_resource_id: attempt.id(),
        kind: issue.kind,
        hash: issue.hash,
        issued_at: now,
        expires_at,
        hard_expires_at: cap.max(expires_at),
        consumed: None,
        revoked_at: None,
        issued_by: Some(actor.name.clone()),
    })));
    commit.audit.push(audit("token.issue", issue.id, snapshot, actor).with(json!({
        "provisioned_resource_id": attempt.id(),
        "expires_at": expires_at,
        "replaces": replaced.map(|token| token.id),
    })));
    commit.wakes.push(attempt.id().into());
    commit.writes.push(Write::Broker(BrokerWrite::AttemptUpdate(attempt)));
    commit
}

/// Refuses unless the attempt waits for a node that has not enrolled yet.
fn check_waiting(snapshot: &ResourceSnapshot) -> Result<(), Refusal> {
    let phase = snapshot.attempt.phase();
    let problem = match (phase, snapshot.node_fact()) {
        (_, NodeFact::NotExpected) => "has a blueprint without a node".to_owned(),
        (_, NodeFact::Registered) => "has its node already".to_owned(),
        // Not in Pending if the loop mints a token with the first apply: it would
        // revoke this one.
        (Phase::Pending | Phase::Provisioning | Phase::Enrolling, NodeFact::Absent)
            if phase != Phase::Pending || !snapshot.blueprint.engine.carries_token() =>
        {
            let used = snapshot.token.as_ref().is_some_and(|token| token.consumed.is_some());
            if !used {
                return Ok(());
            }
            format!(
                "had a node, which left; let its machine enrol again with `slipway resource reenrol {}`",
                snapshot.resource.handle
            )
        }
        (phase, NodeFact::Absent) => {
            format!("is {phase}; a token is issued in Provisioning and Enrolling")
        }
    };
    let handle = &snapshot.resource.handle;
    Err(Refusal::new(
        ErrorKind::NotEnrolling,
        format!("resource `{handle}` {problem}, so no node may enrol for it"),
    ))
}

/// Revokes a token; the snapshot was loaded by its hash. If the attempt still
/// waits, the loop mints another one with its next apply.
pub fn revoke(
    snapshot: &ResourceSnapshot,
    id: BootstrapTokenId,
    reason: Option<&str>,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let known = [snapshot.token.as_ref(), snapshot.presented.as_ref()];
    let Some(token) = known.into_iter().flatten().find(|token| token.id == id) else {
        return Err(not_found());
    };
    let spent = match (&token.consumed, token.revoked_at) {
        (Some(consumed), _) => Some(format!("was used by node {}", consumed.node_id)),
        (None, Some(at)) => Some(format!("was revoked at {at}")),
        (None, None) => None,
    };
    if let Some(spent) = spent {
        return Err(Refusal::new(
            ErrorKind::TokenNotRevocable,
            format!("bootstrap token {id} {spent}; there is nothing to revoke"),
        ));
    }
    let mut entry = audit("token.revoke", id, snapshot, actor)
        .with(json!({ "provisioned_resource_id": token.provisioned_resource_id }));
    entry.reason = reason.map(str::to_owned);
    let revoked = BootstrapToken { revoked_at: Some(snapshot.now), ..token.clone() };
    Ok(Commit {
        writes: vec![Write::Nodes(NodesWrite::TokenUpdate(revoked))],
        audit: vec![entry],
        wakes: vec![snapshot.attempt.id().into()],
        ..Commit::default()
    })
}

/// The same refusal for an unknown token and for one of another project.
pub fn not_found() -> Refusal {
    Refusal::new(ErrorKind::TokenNotFound, "there is no such bootstrap token; check its id")
}

fn audit(
    verb: &'static str,
    id: BootstrapTokenId,
    snapshot: &ResourceSnapshot,
    actor: &Actor,
) -> AuditEntry {
    let subject = About::new(id).of(snapshot.resource.project_id).at(Revision::FIRST);
    AuditEntry::new(verb, actor, subject, snapshot.now)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use uuid::Uuid;

    use super::*;
    use crate::catalog::blueprint_version::Engine;
    use crate::fixtures::{at, mk_actor, mk_node, mk_snapshot, mk_token};
    use crate::nodes::token::{Carried, Consumption, TokenDecision, TokenLifetimes, decide_token};

    fn mk_issue(seconds: u64) -> Issue {
        Issue {
            id: BootstrapTokenId::new(Uuid::from_u128(700)),
            hash: SecretHash::of(b"by hand"),
            kind: TokenKind::Node,
            lifetime: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn a_token_by_hand_revokes_the_one_before_and_the_loop_keeps_it() {
        let mut snapshot = mk_snapshot(Phase::Enrolling);
        let old = mk_token(100, 90_000, 90_000);
        snapshot.token = Some(old.clone());
        let commit = issue(&snapshot, mk_issue(600), &mk_actor()).unwrap();
        let [
            Write::Nodes(NodesWrite::TokenUpdate(before)),
            Write::Nodes(NodesWrite::TokenInsert(new)),
            Write::Broker(BrokerWrite::AttemptUpdate(attempt)),
        ] = &commit.writes[..]
        else {
            panic!("{commit:?}")
        };
        assert_eq!((before.id, before.revoked_at), (old.id, Some(snapshot.now)));
        assert_eq!(attempt.bootstrap_token_id(), Some(new.id));
        assert_eq!(new.expires_at, snapshot.now.plus(Duration::from_secs(600)));
        assert_eq!(commit.wakes, [snapshot.attempt.id().into()]);
        // The object still carries the old one.
        let carried = Carried::Token { id: old.id, hash: old.hash };
        let lifetimes = TokenLifetimes::default();
        let decided = |now| decide_token(Some(new), carried, NodeFact::Absent, lifetimes, now);
        assert_eq!(decided(snapshot.now), TokenDecision::Keep);
        assert!(matches!(decided(new.expires_at), TokenDecision::Mint { .. }));
    }

    /// Invariant 9: a token is issued only in phases in which a node may enrol.
    #[test]
    fn a_token_is_issued_only_while_a_node_is_waited_for() {
        let refused = |snapshot: &ResourceSnapshot| {
            issue(snapshot, mk_issue(600), &mk_actor()).map(|_| ()).map_err(|refusal| refusal.kind)
        };
        for &phase in Phase::ALL {
            let snapshot = mk_snapshot(phase);
            let expected = match phase {
                Phase::Provisioning | Phase::Enrolling => Ok(()),
                _ => Err(ErrorKind::NotEnrolling),
            };
            assert_eq!(refused(&snapshot), expected, "{phase}");
            let enrolled = ResourceSnapshot { node: Some(mk_node()), ..snapshot };
            assert_eq!(refused(&enrolled), Err(ErrorKind::NotEnrolling), "{phase}");
        }
        // Where the loop mints none, there is no apply to wait for.
        let mut by_hand = mk_snapshot(Phase::Pending);
        Arc::make_mut(&mut by_hand.blueprint).engine = Engine::Manual;
        assert_eq!(refused(&by_hand), Ok(()));
        let mut left = mk_snapshot(Phase::Enrolling);
        left.token = Some(used());
        assert_eq!(refused(&left), Err(ErrorKind::NotEnrolling));
    }

    #[test]
    fn a_token_lives_within_its_bounds() {
        let snapshot = mk_snapshot(Phase::Enrolling);
        for seconds in [0, 299, 86_401] {
            let refusal = issue(&snapshot, mk_issue(seconds), &mk_actor()).unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some("ttl_seconds"), "{seconds}");
        }
        for seconds in [300, 86_400] {
            assert!(issue(&snapshot, mk_issue(seconds), &mk_actor()).is_ok(), "{seconds}");
        }
        let bridge = Issue { kind: TokenKind::Bridge, ..mk_issue(600) };
        let refusal = issue(&snapshot, bridge, &mk_actor()).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("kind"));
    }

    fn used() -> BootstrapToken {
        let consumed =
            Consumption { at: at(110), nonce: None, node_id: mk_node().id, public_key: [1; 32] };
        BootstrapToken { consumed: Some(consumed), ..mk_token(100, 900, 900) }
    }

    #[test]
    fn what_is_spent_is_not_revoked() {
        let ask = |token: BootstrapToken| {
            let id = token.id;
            let mut snapshot = mk_snapshot(Phase::Enrolling);
            snapshot.token = Some(token);
            revoke(&snapshot, id, None, &mk_actor())
        };
        let revoked = BootstrapToken { revoked_at: Some(at(110)), ..mk_token(100, 900, 900) };
        for spent in [used(), revoked] {
            assert_eq!(ask(spent).unwrap_err().kind, ErrorKind::TokenNotRevocable);
        }
        let commit = ask(mk_token(100, 900, 900)).unwrap();
        assert!(
            matches!(&commit.writes[..], [Write::Nodes(NodesWrite::TokenUpdate(t))] if t.revoked_at.is_some())
        );
        assert_eq!(commit.wakes.len(), 1);
        let nobody = revoke(&mk_snapshot(Phase::Enrolling), mk_issue(600).id, None, &mk_actor());
        assert_eq!(nobody.unwrap_err().kind, ErrorKind::TokenNotFound);
    }
}
