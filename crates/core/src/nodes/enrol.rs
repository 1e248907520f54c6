//! Enrolment: consumes a bootstrap token and registers a node with an address of
//! its project's mesh, in one transaction that locks the rows of the resource and
//! of the address. A refusal consumes nothing.

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::phase::Phase;
use crate::broker::snapshot::ResourceSnapshot;
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{NodeId, ProjectId, ResourceId, Revision};
use crate::nodes::NodesWrite;
use crate::nodes::mesh::MeshPool;
use crate::nodes::node::{Node, Reported};
use crate::nodes::token::{BootstrapToken, Consumption, SecretHash, TokenKind, TokenState};

/// What an enrolment is decided on: the resource that the token belongs to, its
/// row locked, and an address of its project's mesh, its row locked. Another
/// enrolment may take the nonce or the key before this one commits; the store then
/// decides again.
#[derive(Debug, Clone)]
pub struct EnrolSnapshot {
    pub resource: ResourceSnapshot,
    pub pool: MeshPool,
    /// Another token of the project was consumed with the nonce.
    pub nonce_taken: bool,
    /// A registered node of the project has the public key.
    pub public_key_taken: bool,
}

/// What a node presents, with the identity that it would get.
#[derive(Debug, Clone)]
pub struct Enrolment {
    pub token_hash: SecretHash,
    pub kind: TokenKind,
    pub public_key: [u8; 32],
    pub hostname: String,
    pub capabilities: Vec<String>,
    pub nonce: Option<String>,
    /// What the node claims to belong to; each is checked if given.
    pub project_id: Option<ProjectId>,
    pub resource_handle: Option<String>,
    pub requested_resource_id: Option<ResourceId>,
    pub reported: Reported,
    /// Id and key for the node, if it is a new one.
    pub node_id: NodeId,
    pub key_hash: SecretHash,
}

/// The node that a token led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Enrolled {
    /// The same as before if this repeats a registration whose answer was lost.
    pub node_id: NodeId,
    pub commit: Commit,
}

/// Consumes the token, or returns the same node again.
///
/// *Expected flow.* Resource waits → token usable → address found → node
/// registered, token consumed, loop woken.
/// *Guarantees.* A token registers at most one node. If a node repeats its
/// registration with the same public key before the first heartbeat, it gets the
/// same node with a fresh key, since the first answer may have been lost. This
/// holds while the resource is being deleted too: without its key the node could
/// never acknowledge its drain. A public key has one registered node in a project.
/// *Assumptions.* `known` was loaded by the hash of the presented token.
pub fn enrol(known: &EnrolSnapshot, enrolment: &Enrolment) -> Result<Enrolled, Refusal> {
    let snapshot = &known.resource;
    let now = snapshot.now;
    let phase = snapshot.attempt.phase();
    if phase == Phase::Failed || phase.is_deletion() {
        let token = snapshot.token.as_ref().filter(|token| token.hash == enrolment.token_hash);
        let again = token
            .filter(|token| check_binding(snapshot, token, enrolment).is_ok())
            .and_then(|token| token.consumed.as_ref())
            .and_then(|consumption| answer_again(snapshot, consumption, enrolment).ok());
        return again.ok_or_else(|| {
            Refusal::new(
                ErrorKind::NotEnrolling,
                format!(
                    "resource `{}` is {phase} and no node may enrol for it; declare a new resource",
                    snapshot.resource.handle
                ),
            )
        });
    }
    let Some(token) = snapshot.token.as_ref().filter(|token| token.hash == enrolment.token_hash)
    else {
        // The token was replaced: the attempt records another one. The answer
        // tells its bearer what became of it before.
        let presented = snapshot.presented.as_ref();
        return Err(match presented.map(|token| (token, token.state(now))) {
            Some((_, TokenState::Consumed)) => consumed(),
            Some((token, TokenState::Expired)) => expired(token, snapshot),
            _ => revoked(snapshot),
        });
    };
    check_binding(snapshot, token, enrolment)?;
    if let Some(consumption) = &token.consumed {
        return answer_again(snapshot, consumption, enrolment);
    }
    match token.state(now) {
        TokenState::Revoked => return Err(revoked(snapshot)),
        TokenState::Expired => return Err(expired(token, snapshot)),
        TokenState::Usable | TokenState::Consumed => {}
    }
    if known.nonce_taken {
        return Err(Refusal::new(
            ErrorKind::NonceCollision,
            "another node of the project registered with this nonce; send a fresh one",
        )
        .at("nonce"));
    }
    // Peers identify each other by their keys: two nodes with one key would
    // take over the traffic of each other.
    if known.public_key_taken {
        return Err(Refusal::new(
            ErrorKind::PublicKeyTaken,
            "another registered node of the project has this public key; generate another key pair, or deregister the other node first",
        )
        .at("public_key"));
    }
    let mesh = known.pool.next()?;

    let node = Node {
        id: enrolment.node_id,
        project_id: snapshot.resource.project_id,
        resource_id: snapshot.resource.id,
        provisioned_resource_id: snapshot.attempt.id(),
        bootstrap_token_id: token.id,
        // Newer agents say the handle, which the node of another attempt may have.
        hostname: match snapshot.attempt.hostname() {
            Some(own) if enrolment.hostname == snapshot.resource.handle.as_str() => own.to_owned(),
            _ => enrolment.hostname.clone(),
        },
        public_key: enrolment.public_key,
        key_hash: Some(enrolment.key_hash),
        former_key_hash: None,
        capabilities: enrolment.capabilities.clone(),
        mesh,
        reported: enrolment.reported.clone(),
        revision: Revision::FIRST,
        registered_at: now,
        last_heartbeat_at: None,
        drain: None,
        deregistration: None,
    };
    let used = BootstrapToken {
        consumed: Some(Consumption {
            at: now,
            nonce: enrolment.nonce.clone(),
            node_id: node.id,
            public_key: enrolment.public_key,
        }),
        ..token.clone()
    };
    let audit = audit("node.enrol", &node, Revision::FIRST, snapshot).with(json!({
        "hostname": node.hostname, "resource_id": snapshot.resource.id, "mesh_ip": mesh.ip,
    }));
    Ok(Enrolled {
        node_id: node.id,
        commit: Commit {
            writes: vec![
                Write::Nodes(NodesWrite::NodeInsert(node)),
                Write::Nodes(NodesWrite::TokenUpdate(used)),
            ],
            audit: vec![audit],
            wakes: vec![snapshot.attempt.id().into()],
            ..Commit::default()
        },
    })
}

fn check_binding(
    snapshot: &ResourceSnapshot,
    token: &BootstrapToken,
    enrolment: &Enrolment,
) -> Result<(), Refusal> {
    if enrolment.kind != token.kind || token.kind != TokenKind::Node {
        return Err(Refusal::new(ErrorKind::KindMismatch, "the bootstrap token is not for a node"));
    }
    if enrolment.project_id.is_some_and(|project| project != token.project_id) {
        return Err(Refusal::new(
            ErrorKind::ProjectMismatch,
            "the bootstrap token belongs to another project than the one named",
        )
        .at("project_id"));
    }
    if enrolment
        .resource_handle
        .as_ref()
        .is_some_and(|handle| handle != snapshot.resource.handle.as_str())
    {
        return Err(Refusal::new(
            ErrorKind::ResourceNotFound,
            "the bootstrap token belongs to another resource than the one named",
        )
        .at("resource_handle"));
    }
    if enrolment.requested_resource_id.is_some_and(|id| id != snapshot.resource.id) {
        return Err(Refusal::new(
            ErrorKind::ResourceNotFound,
            "the bootstrap token belongs to another resource than the one requested",
        )
        .at("requested_resource_id"));
    }
    Ok(())
}

fn answer_again(
    snapshot: &ResourceSnapshot,
    consumption: &Consumption,
    enrolment: &Enrolment,
) -> Result<Enrolled, Refusal> {
    let node = snapshot.node.as_ref().filter(|node| {
        node.id == consumption.node_id
            && node.is_registered()
            && node.last_heartbeat_at.is_none()
            && node.public_key == enrolment.public_key
    });
    let Some(node) = node else {
        return Err(consumed());
    };
    let rekeyed = Node { key_hash: Some(enrolment.key_hash), ..node.clone() };
    let audit = audit("node.enrol_again", &rekeyed, node.revision.next(), snapshot);
    Ok(Enrolled {
        node_id: node.id,
        commit: Commit {
            writes: vec![Write::Nodes(NodesWrite::NodeUpdate(rekeyed))],
            audit: vec![audit],
            ..Commit::default()
        },
    })
}

fn audit(
    verb: &'static str,
    node: &Node,
    revision: Revision,
    snapshot: &ResourceSnapshot,
) -> AuditEntry {
    let actor = Actor::new(format!("node:{}", node.id));
    let subject = About::new(node.id).of(node.project_id).at(revision);
    AuditEntry::new(verb, &actor, subject, snapshot.now)
}

fn consumed() -> Refusal {
    Refusal::new(
        ErrorKind::TokenConsumed,
        "the bootstrap token was used already; a token enrols one node once",
    )
}

fn revoked(snapshot: &ResourceSnapshot) -> Refusal {
    let handle = &snapshot.resource.handle;
    let message = format!(
        "the bootstrap token was revoked; issue another with `slipway token issue {handle}`"
    );
    Refusal::new(ErrorKind::TokenRevoked, message)
}

/// Says where the next one is: in the document of the resource, unless nothing puts
/// one there.
fn expired(token: &BootstrapToken, snapshot: &ResourceSnapshot) -> Refusal {
    let (at, handle) = (token.expires_at, &snapshot.resource.handle);
    let by_hand = format!("issue one with `slipway token issue {handle}`");
    let current = snapshot.token.as_ref();
    let next = match current.filter(|current| current.id != token.id) {
        Some(current) if current.issued_by.is_some() => {
            format!("somebody issued another by hand since; take that, or {by_hand}")
        }
        Some(_) => format!(
            "another is in the current document of resource `{handle}`; start the agent with that, or {by_hand}"
        ),
        None if snapshot.now >= token.hard_expires_at => {
            format!("it reached its longest life; {by_hand}")
        }
        None => format!(
            "the next apply puts another into the document of resource `{handle}`; start the agent with that, or {by_hand}"
        ),
    };
    Refusal::new(ErrorKind::TokenExpired, format!("the bootstrap token expired at {at}; {next}"))
}

#[cfg(test)]
mod tests;
