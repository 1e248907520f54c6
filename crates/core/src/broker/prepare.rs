//! Records the intent before an apply: mints or prolongs a token, revokes the
//! one that it replaces, and deregisters a node whose substrate is gone, so
//! that a crash after this leaves nothing usable behind.

use std::mem;

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::BrokerWrite;
use crate::broker::phase::NodeFact;
use crate::broker::snapshot::ResourceSnapshot;
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{BootstrapTokenId, ClaimToken, Revision};
use crate::nodes::NodesWrite;
use crate::nodes::drain;
use crate::nodes::node::DeregisteredHow;
use crate::nodes::token::{
    BootstrapToken, Carried, SecretHash, TokenDecision, TokenKind, TokenLifetimes, decide_token,
};
use crate::placement::namespace::Placement;

/// What a loop read before it acted; its writes are valid only if that is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    pub revision: Revision,
    pub claim_token: ClaimToken,
    /// Enrolment, leaving and the end of a drain change this without writing
    /// the attempt, so the revision does not show it.
    pub node: NodeFact,
}

impl Read {
    pub fn of(snapshot: &ResourceSnapshot) -> Self {
        Self {
            revision: snapshot.attempt.revision(),
            claim_token: snapshot.claim_token,
            node: snapshot.node_fact(),
        }
    }
}

/// Refuses a write of a worker whose claim or snapshot is outdated.
pub fn fence(snapshot: &ResourceSnapshot, read: Read) -> Result<(), Refusal> {
    check_claim(snapshot, read.claim_token)?;
    let attempt = &snapshot.attempt;
    if attempt.revision() != read.revision || snapshot.node_fact() != read.node {
        return Err(Refusal::new(
            ErrorKind::RevisionStale,
            format!("{} or its node changed since it was read; it is read again", attempt.id()),
        ));
    }
    Ok(())
}

pub(crate) fn check_claim(
    snapshot: &ResourceSnapshot,
    claim_token: ClaimToken,
) -> Result<(), Refusal> {
    if snapshot.claim_token == claim_token {
        return Ok(());
    }
    let id = snapshot.attempt.id();
    let message = format!("another worker claimed {id} meanwhile; this one stops");
    Err(Refusal::new(ErrorKind::ClaimLost, message))
}

/// The identity of a token about to be minted.
#[derive(Debug, Clone, Copy)]
pub struct FreshToken {
    pub id: BootstrapTokenId,
    pub hash: SecretHash,
}

/// Checks the grounds of an intent again, in the decision that records it: the
/// placement is ready, and the token needs the same action. Returns the token
/// decision with current times.
pub fn confirm(
    snapshot: &ResourceSnapshot,
    intended: TokenDecision,
    carried: Carried,
    lifetimes: TokenLifetimes,
) -> Result<TokenDecision, Refusal> {
    let moved = |what: &str| {
        let id = snapshot.attempt.id();
        Refusal::new(ErrorKind::RevisionStale, format!("{what} of {id} changed since it was read"))
    };
    if !snapshot.placement.as_ref().is_some_and(Placement::is_ready) {
        return Err(moved("the placement"));
    }
    let node = snapshot.node_fact();
    let decision = decide_token(snapshot.token.as_ref(), carried, node, lifetimes, snapshot.now);
    if mem::discriminant(&decision) != mem::discriminant(&intended) {
        return Err(moved("the token"));
    }
    Ok(decision)
}

/// Writes the token decision. The commit is empty if it needs no record;
/// minting needs `fresh`.
pub fn prepare(
    snapshot: &ResourceSnapshot,
    read: Read,
    decision: TokenDecision,
    carried: Carried,
    fresh: Option<FreshToken>,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    fence(snapshot, read)?;
    let mut commit = Commit::default();
    if let (Carried::NoObject, Some(node)) =
        (carried, snapshot.node.as_ref().filter(|node| node.is_registered()))
    {
        // Its substrate is proven absent; a second node will enrol instead.
        let (node, audit) =
            drain::deregister(node, DeregisteredHow::SubstrateAbsent, None, actor, snapshot);
        commit.writes.push(Write::Nodes(NodesWrite::NodeUpdate(node)));
        commit.audit.push(audit);
    }
    match decision {
        TokenDecision::Keep | TokenDecision::Hold(_) => {}
        TokenDecision::Slide { expires_at } => {
            if let Some(token) = &snapshot.token {
                commit.writes.push(Write::Nodes(NodesWrite::TokenUpdate(BootstrapToken {
                    expires_at,
                    ..token.clone()
                })));
            }
        }
        TokenDecision::Mint { expires_at, hard_expires_at } => {
            let Some(fresh) = fresh else {
                return Err(Refusal::new(
                    ErrorKind::Internal,
                    "a token was to be minted, and none was drawn",
                ));
            };
            let unused = |t: &&BootstrapToken| t.consumed.is_none() && t.revoked_at.is_none();
            if let Some(old) = snapshot.token.as_ref().filter(unused) {
                commit.writes.push(Write::Nodes(NodesWrite::TokenUpdate(BootstrapToken {
                    revoked_at: Some(snapshot.now),
                    ..old.clone()
                })));
            }
            let attempt = snapshot.attempt.with_bootstrap_token(fresh.id);
            commit.writes.push(Write::Nodes(NodesWrite::TokenInsert(BootstrapToken {
                id: fresh.id,
                project_id: attempt.project_id(),
                provisioned_resource_id: attempt.id(),
                kind: TokenKind::Node,
                hash: fresh.hash,
                issued_at: snapshot.now,
                expires_at,
                hard_expires_at,
                consumed: None,
                revoked_at: None,
                issued_by: None,
            })));
            let subject = About::new(fresh.id).of(attempt.project_id()).at(Revision::FIRST);
            commit.audit.push(AuditEntry::new("token.mint", actor, subject, snapshot.now).with(
                json!({
                    "provisioned_resource_id": attempt.id(),
                    "expires_at": expires_at,
                }),
            ));
            commit.writes.push(Write::Broker(BrokerWrite::AttemptUpdate(attempt)));
        }
    }
    Ok(commit)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::broker::phase::Phase;
    use crate::fixtures::{at, mk_actor, mk_node, mk_snapshot, mk_token};

    const FRESH: BootstrapTokenId = BootstrapTokenId::new(Uuid::from_u128(700));

    fn read(snapshot: &ResourceSnapshot) -> Read {
        Read::of(snapshot)
    }

    fn run(snapshot: &ResourceSnapshot, decision: TokenDecision, carried: Carried) -> Commit {
        let fresh = FreshToken { id: FRESH, hash: SecretHash::of(b"fresh") };
        prepare(snapshot, read(snapshot), decision, carried, Some(fresh), &mk_actor()).unwrap()
    }

    const MINT: TokenDecision =
        TokenDecision::Mint { expires_at: at(2_000), hard_expires_at: at(9_000) };

    /// Invariant 5: the decision that records the intent checks the placement.
    #[test]
    fn an_intent_whose_grounds_moved_is_refused() {
        let lifetimes = TokenLifetimes::default();
        let asked = |snapshot: &ResourceSnapshot| {
            confirm(snapshot, MINT, Carried::NoObject, lifetimes).map_err(|refusal| refusal.kind)
        };
        let good = mk_snapshot(Phase::Pending);
        assert!(matches!(asked(&good), Ok(TokenDecision::Mint { .. })));
        let unplaced = ResourceSnapshot { placement: None, ..good.clone() };
        assert_eq!(asked(&unplaced), Err(ErrorKind::RevisionStale));
        // The token is in place by now, so there is nothing to mint.
        let token = mk_token(1_000, 90_000, 90_000);
        let carried = Carried::Token { id: token.id, hash: token.hash };
        let minted = ResourceSnapshot { token: Some(token), ..good };
        let refusal = confirm(&minted, MINT, carried, lifetimes).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::RevisionStale);
    }

    /// The loop continues with the snapshot that it would read.
    #[test]
    fn a_snapshot_follows_the_commit_that_was_written() {
        let mut snapshot = mk_snapshot(Phase::Pending);
        snapshot.node = Some(mk_node());
        let commit = run(&snapshot, MINT, Carried::NoObject);
        let after = snapshot.after(&commit);
        let before = read(&snapshot);
        let revision = before.revision.next();
        assert_eq!(Read::of(&after), Read { revision, node: NodeFact::Absent, ..before });
        assert_eq!(after.attempt.bootstrap_token_id(), Some(FRESH));
        assert_eq!(after.token.map(|token| token.id), Some(FRESH));
        assert!(after.node.is_some_and(|node| !node.is_registered()));
    }

    /// Invariant 10: the old token is revoked in the transaction that mints.
    #[test]
    fn minting_revokes_the_unused_token_and_records_the_new_one() {
        let mut snapshot = mk_snapshot(Phase::Pending);
        snapshot.token = Some(mk_token(1_000, 1_100, 2_000));
        let commit = run(&snapshot, MINT, Carried::NoObject);
        let [
            Write::Nodes(NodesWrite::TokenUpdate(old)),
            Write::Nodes(NodesWrite::TokenInsert(new)),
            Write::Broker(BrokerWrite::AttemptUpdate(attempt)),
        ] = &commit.writes[..]
        else {
            panic!("{commit:?}")
        };
        assert_eq!(old.revoked_at, Some(snapshot.now));
        assert_eq!(new.id, FRESH);
        assert_eq!(attempt.bootstrap_token_id(), Some(FRESH));
    }

    #[test]
    fn a_node_without_substrate_is_deregistered_before_a_second_can_enrol() {
        let mut snapshot = mk_snapshot(Phase::Ready);
        snapshot.node = Some(mk_node());
        let commit = run(&snapshot, MINT, Carried::NoObject);
        assert!(
            matches!(&commit.writes[0], Write::Nodes(NodesWrite::NodeUpdate(node)) if !node.is_registered())
        );
        let before = read(&snapshot);
        let after = Read::of(&snapshot.after(&commit));
        assert_eq!((after.node, after.revision), (NodeFact::Absent, before.revision.next()));
    }

    /// Invariant 6: a worker that lost its claim writes nothing.
    #[test]
    fn an_outdated_worker_is_fenced_off() {
        let snapshot = mk_snapshot(Phase::Pending);
        let current = read(&snapshot);
        let lost = Read { claim_token: ClaimToken(current.claim_token.0 - 1), ..current };
        assert_eq!(fence(&snapshot, lost).unwrap_err().kind, ErrorKind::ClaimLost);
        let stale = Read { revision: Revision(current.revision.0 - 1), ..current };
        assert_eq!(fence(&snapshot, stale).unwrap_err().kind, ErrorKind::RevisionStale);
        assert_eq!(fence(&snapshot, current), Ok(()));
        // The node left between the observation and the record.
        let gone = Read { node: NodeFact::Registered, ..current };
        assert_eq!(fence(&snapshot, gone).unwrap_err().kind, ErrorKind::RevisionStale);
    }
}
