//! Letting a machine enrol again, without replacing it.
//!
//! A token registers one node, and a node without its key can do nothing. So a machine that
//! could not store its identity, or that lost it, is a dead end for its resource, and so is
//! one whose node left. This deregisters what is left of the node and issues a token by hand.
//!
//! *Guarantees.* The key of the old node and every earlier token end in the same commit. A
//! node that still reports is never taken away by this. Nothing outside is touched, so this
//! is a person's write to the registry and is allowed in every mode; the phase follows by
//! observation, with the next tick.

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::phase::{NodeFact, Phase};
use crate::broker::snapshot::ResourceSnapshot;
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::nodes::NodesWrite;
use crate::nodes::drain::deregister;
use crate::nodes::node::{DeregisteredHow, Node, Reachability};
use crate::nodes::tokens_by_hand::{Issue, check_issue, replace_token};
use crate::text::Reason;
use crate::topology::owner::{self, Verb};

/// The audit verb.
pub const REENROL: &str = "resource.reenrol";

/// Deregisters the node and issues a token for its machine. Repeated, it issues another
/// token, and the one before ends.
pub fn request(
    snapshot: &ResourceSnapshot,
    issue: Issue,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    owner::check(snapshot, Verb::Reenrol)?;
    check_issue(&issue)?;
    let node = check(snapshot)?;
    let (now, resource) = (snapshot.now, &snapshot.resource);
    let mut commit = replace_token(snapshot, issue, actor);
    let about = About::new(resource.id).of(resource.project_id);
    let entry = AuditEntry::new(REENROL, actor, about, now).because(reason.as_str());
    let entry = entry.caused_by(issue.id.as_uuid());
    commit.audit.push(entry.with(json!({
        "provisioned_resource_id": snapshot.attempt.id(),
        "node_id": node.map(|node| node.id),
        "token_id": issue.id,
    })));
    if let Some(node) = node {
        let why = Some(reason.as_str().to_owned());
        let (node, audit) = deregister(node, DeregisteredHow::Reenrolled, why, actor, snapshot);
        commit.writes.insert(0, Write::Nodes(NodesWrite::NodeUpdate(node)));
        commit.audit.push(audit.because(reason.as_str()));
    }
    Ok(commit)
}

/// The node to deregister, if one is registered.
fn check(snapshot: &ResourceSnapshot) -> Result<Option<&Node>, Refusal> {
    let (phase, now) = (snapshot.attempt.phase(), snapshot.now);
    let handle = &snapshot.resource.handle;
    let refuse = |kind, problem: String| {
        Err(Refusal::new(kind, format!("resource `{handle}` {problem}; nothing was changed")))
    };
    match phase {
        Phase::Provisioning | Phase::Enrolling | Phase::Ready => {}
        // In Pending there is no object: the first apply mints a token and would end this one.
        Phase::Pending
        | Phase::Failed
        | Phase::Deregistering
        | Phase::Deprovisioning
        | Phase::Deleted => {
            let problem =
                format!("is {phase}; a machine enrols again in Provisioning, Enrolling and Ready");
            return refuse(ErrorKind::NotEnrolling, problem);
        }
    }
    if snapshot.node_fact() == NodeFact::NotExpected {
        return refuse(ErrorKind::NotEnrolling, "has a blueprint without a node".to_owned());
    }
    let Some(node) = snapshot.node.as_ref().filter(|node| node.is_registered()) else {
        return Ok(None);
    };
    if node.drain.is_some() {
        let problem = format!(
            "waits for node `{}` to drain, because somebody deletes its substrate",
            node.hostname
        );
        return refuse(ErrorKind::NothingToReenrol, problem);
    }
    match (node.last_heartbeat_at, node.reachability(now)) {
        (None, _) | (_, Reachability::Unreachable) => Ok(Some(node)),
        (Some(at), _) => {
            let problem = format!(
                "has node `{}`, which reported at {at}; deregister it on its machine, or wait until it is unreachable",
                node.hostname
            );
            refuse(ErrorKind::NothingToReenrol, problem)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::broker::BrokerWrite;
    use crate::fixtures::{at, mk_actor, mk_node, mk_snapshot, mk_token};
    use crate::ids::BootstrapTokenId;
    use crate::nodes::token::{BootstrapToken, Consumption, SecretHash, TokenKind};

    fn ask(snapshot: &ResourceSnapshot, number: u128) -> Result<Commit, Refusal> {
        let issue = Issue {
            id: BootstrapTokenId::new(Uuid::from_u128(number)),
            hash: SecretHash::of(&number.to_be_bytes()),
            kind: TokenKind::Node,
            lifetime: Duration::from_secs(600),
        };
        request(snapshot, issue, &Reason::parse("its disk was full").unwrap(), &mk_actor())
    }

    /// Its node enrolled with the token and was never heard of.
    fn silent(phase: Phase) -> ResourceSnapshot {
        let node = mk_node();
        let used = Consumption { at: at(110), nonce: None, node_id: node.id, public_key: [1; 32] };
        let token = BootstrapToken { consumed: Some(used), ..mk_token(100, 900, 900) };
        ResourceSnapshot { node: Some(node), token: Some(token), ..mk_snapshot(phase) }
    }

    #[test]
    fn the_node_its_key_and_its_token_end_and_a_fresh_token_begins() {
        let snapshot = silent(Phase::Ready);
        let commit = ask(&snapshot, 700).unwrap();
        let [
            Write::Nodes(NodesWrite::NodeUpdate(node)),
            Write::Nodes(NodesWrite::TokenInsert(token)),
            Write::Broker(BrokerWrite::AttemptUpdate(attempt)),
        ] = &commit.writes[..]
        else {
            panic!("{commit:?}")
        };
        let gone = node.deregistration.as_ref().unwrap();
        assert_eq!((gone.how, node.key_hash), (DeregisteredHow::Reenrolled, None));
        assert_eq!(attempt.bootstrap_token_id(), Some(token.id));
        assert_eq!(attempt.phase(), Phase::Ready, "the phase follows by observation");
        assert!(token.is_usable(snapshot.now));
        assert_eq!(commit.wakes, [snapshot.attempt.id().into()]);
        let verbs: Vec<_> = commit.audit.iter().map(|entry| entry.verb).collect();
        assert_eq!(verbs, ["token.issue", REENROL, "node.deregister"]);

        // Run twice: another token, and the first ends.
        let after = snapshot.after(&commit);
        let again = ask(&after, 701).unwrap();
        let [
            Write::Nodes(NodesWrite::TokenUpdate(first)),
            Write::Nodes(NodesWrite::TokenInsert(second)),
            Write::Broker(_),
        ] = &again.writes[..]
        else {
            panic!("{again:?}")
        };
        assert_eq!((first.id, first.revoked_at), (token.id, Some(after.now)));
        assert_ne!(second.id, first.id);
    }

    #[test]
    fn only_a_machine_that_may_enrol_does_so_again() {
        for &phase in Phase::ALL {
            let allowed = matches!(phase, Phase::Provisioning | Phase::Enrolling | Phase::Ready);
            let asked = ask(&silent(phase), 700);
            assert_eq!(asked.is_ok(), allowed, "{phase}");
            if let Err(refusal) = asked {
                assert_eq!(refusal.kind, ErrorKind::NotEnrolling, "{phase}");
            }
        }
    }

    #[test]
    fn a_node_that_reports_is_not_taken_away() {
        let mut snapshot = silent(Phase::Ready);
        let now = snapshot.now;
        let heard = |snapshot: &mut ResourceSnapshot, seconds: i64| {
            let at = crate::time::Timestamp::from_micros(now.as_micros() - seconds * 1_000_000);
            snapshot.node.as_mut().unwrap().last_heartbeat_at = Some(at);
        };
        for seconds in [0, 120, 300] {
            heard(&mut snapshot, seconds);
            let refusal = ask(&snapshot, 700).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::NothingToReenrol, "{seconds}");
        }
        heard(&mut snapshot, 301);
        assert!(ask(&snapshot, 700).is_ok(), "its machine may have lost its identity");
        let mut left = silent(Phase::Enrolling);
        let node = left.node.take().unwrap();
        let gone = deregister(&node, DeregisteredHow::Left, None, &mk_actor(), &left).0;
        left.node = Some(gone);
        assert!(ask(&left, 700).is_ok(), "its node left");
    }
}
