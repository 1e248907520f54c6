//! The proof of emptiness: everything that was made for what a deletion took down, and how
//! each was proven gone. Pure: rows in, lines out.

use uuid::Uuid;

use crate::broker::orphan::KeepOrder;
use crate::broker::phase::Phase;
use crate::closed_set::closed_set;
use crate::deletion::leak::{AbandonedKind, Leak};
use crate::nodes::node::DeregisteredHow;
use crate::time::Timestamp;

closed_set!(
    /// How far the proof of one thing has come.
    Proof {
        /// Proven gone, or ended where there is nothing outside.
        Gone => "gone",
        NotYet => "not_yet",
        /// A person gave the proof up.
        Abandoned => "abandoned",
        /// Something may be left outside, and a leak record says what.
        LeakOpen => "leak_open",
        /// It stays in the cloud because a person said so.
        KeptOnPurpose => "kept_on_purpose",
    }
);

closed_set!(
    /// What can be made for a project.
    MadeKind {
        Attempt => "attempt",
        Node => "node",
        Token => "token",
        Leak => "leak",
        Namespace => "namespace",
    }
);

/// One thing that was made, as its rows have it.
#[derive(Debug, Clone, PartialEq)]
pub enum Made {
    Attempt(MadeAttempt),
    Node(MadeNode),
    Token(MadeToken),
    /// A leak that names an attempt, or the namespace of the project.
    Leak {
        resource: Option<String>,
        leak: Box<Leak>,
    },
    Namespace(MadeNamespace),
}

#[derive(Debug, Clone, PartialEq)]
pub struct MadeAttempt {
    pub id: Uuid,
    pub resource: String,
    pub number: i32,
    pub composite: String,
    pub cluster: Option<String>,
    /// As stored: a row that this version cannot read is shown all the same.
    pub phase: String,
    pub phase_since: Timestamp,
    pub made_at: Timestamp,
    pub absence_proven_at: Option<Timestamp>,
    pub abandoned_at: Option<Timestamp>,
    /// Who abandoned it and why, from the audit, while that is kept.
    pub abandoned_by: Option<String>,
    pub abandoned_reason: Option<String>,
    pub kept: Vec<KeepOrder>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MadeNode {
    pub id: Uuid,
    pub resource: String,
    pub hostname: String,
    pub registered_at: Timestamp,
    pub deregistered_at: Option<Timestamp>,
    pub how: Option<DeregisteredHow>,
    pub by: Option<String>,
    pub key_revoked: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MadeToken {
    pub id: Uuid,
    pub resource: String,
    pub now: Timestamp,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    pub consumed_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MadeNamespace {
    /// Of the project.
    pub id: Uuid,
    pub name: String,
    pub cluster: String,
    /// Whether the engine of the cluster has namespaces.
    pub outside: bool,
    pub phase: String,
    pub made_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub kind: MadeKind,
    pub id: Uuid,
    pub name: String,
    pub made_at: Timestamp,
    pub proof: Proof,
    /// What was observed, in words.
    pub how: String,
    pub at: Option<Timestamp>,
    pub by: Option<String>,
    /// Leak records that say what may be left, or is kept.
    pub leaks: Vec<Uuid>,
}

/// The line of something that was made.
pub fn line(made: &Made) -> Line {
    match made {
        Made::Attempt(attempt) => of_attempt(attempt),
        Made::Node(node) => of_node(node),
        Made::Token(token) => of_token(token),
        Made::Leak { resource, leak } => of_leak(resource.as_deref(), leak),
        Made::Namespace(namespace) => of_namespace(namespace),
    }
}

fn of_attempt(attempt: &MadeAttempt) -> Line {
    let MadeAttempt { composite, phase, phase_since, .. } = attempt;
    let cluster = attempt.cluster.as_deref().unwrap_or("(unknown)");
    let gone = *phase == Phase::Deleted.as_str();
    let mut by = None;
    let (proof, how, at) = match (attempt.absence_proven_at, attempt.abandoned_at) {
        (Some(at), _) if gone => (
            Proof::Gone,
            format!(
                "{composite} on cluster {cluster} was observed absent twice, at {phase_since} and a lease later"
            ),
            Some(at),
        ),
        (_, Some(at)) => {
            by = attempt.abandoned_by.clone();
            let reason = attempt.abandoned_reason.as_deref().unwrap_or("the audit was pruned");
            let how = format!(
                "abandoned, and nobody proved {composite} on cluster {cluster} gone: {reason}"
            );
            (Proof::Abandoned, how, Some(at))
        }
        _ if gone => (
            Proof::NotYet,
            format!(
                "{composite} on cluster {cluster} was observed absent once; the second proof is due a lease later"
            ),
            Some(*phase_since),
        ),
        _ => (Proof::NotYet, format!("it is {phase}"), Some(*phase_since)),
    };
    Line {
        kind: MadeKind::Attempt,
        id: attempt.id,
        name: format!("{} attempt {}", attempt.resource, attempt.number),
        made_at: attempt.made_at,
        proof,
        how,
        at,
        by,
        leaks: attempt.kept.iter().map(|kept| kept.leak_record_id.as_uuid()).collect(),
    }
}

fn of_node(node: &MadeNode) -> Line {
    let (proof, how) = match (node.deregistered_at, node.how) {
        (None, _) => (Proof::NotYet, "it is registered".to_owned()),
        (Some(_), how) if !node.key_revoked => {
            let how = how.map_or("?", DeregisteredHow::as_str);
            (Proof::NotYet, format!("deregistered ({how}), and its key is valid"))
        }
        (Some(_), how) => {
            let how = how.map_or("?", DeregisteredHow::as_str);
            (Proof::Gone, format!("deregistered ({how}), and its key is revoked"))
        }
    };
    Line {
        kind: MadeKind::Node,
        id: node.id,
        name: format!("{} of {}", node.hostname, node.resource),
        made_at: node.registered_at,
        proof,
        how,
        at: node.deregistered_at,
        by: node.by.clone(),
        leaks: Vec::new(),
    }
}

fn of_token(token: &MadeToken) -> Line {
    let (proof, how, at) = match (token.consumed_at, token.revoked_at) {
        (_, Some(at)) => (Proof::Gone, "revoked", Some(at)),
        (Some(at), None) => (Proof::Gone, "consumed by its node; it enrols no other", Some(at)),
        (None, None) if token.expires_at <= token.now => {
            (Proof::Gone, "expired", Some(token.expires_at))
        }
        (None, None) => (Proof::NotYet, "it can be used", None),
    };
    Line {
        kind: MadeKind::Token,
        id: token.id,
        name: format!("for {}", token.resource),
        made_at: token.issued_at,
        proof,
        how: how.to_owned(),
        at,
        by: None,
        leaks: Vec::new(),
    }
}

fn of_leak(resource: Option<&str>, leak: &Leak) -> Line {
    let named = |field: &str| leak.evidence[field].as_str();
    let kept = AbandonedKind::parse(&leak.kind) == Some(AbandonedKind::External);
    let what = match (named("external_name"), &leak.object_ref) {
        (Some(name), _) if kept => format!("{} {name}", named("kind").unwrap_or("object")),
        (_, Some(object)) => format!("{}/{}", object.namespace, object.name),
        (_, None) => leak.subject.id.to_string(),
    };
    let (proof, how, at, by) = match (&leak.resolved, kept) {
        (Some(end), _) => {
            let how = end.resolution.as_deref().unwrap_or("proven absent by the resource loop");
            (Proof::Gone, format!("resolved: {how}"), end.at, end.by.clone())
        }
        (None, true) => {
            let reason = named("reason").unwrap_or_default();
            let by = named("kept_on_purpose_by").map(str::to_owned);
            (Proof::KeptOnPurpose, format!("kept outside on purpose: {reason}"), leak.found_at, by)
        }
        (None, false) => {
            let how = "it may be left outside; the leak is open".to_owned();
            (Proof::LeakOpen, how, leak.found_at, None)
        }
    };
    let of = resource.map(|resource| format!(" of {resource}")).unwrap_or_default();
    Line {
        kind: MadeKind::Leak,
        id: leak.id.as_uuid(),
        name: format!("{} {what}{of}", leak.kind),
        made_at: leak.found_at,
        proof,
        how,
        at: Some(at),
        by,
        leaks: vec![leak.id.as_uuid()],
    }
}

fn of_namespace(namespace: &MadeNamespace) -> Line {
    let MadeNamespace { name, cluster, phase, .. } = namespace;
    let (proof, how) = if !namespace.outside {
        (Proof::Gone, format!("the engine of cluster {cluster} makes no namespace"))
    } else if phase == "Deleted" {
        let how = format!(
            "observed absent on cluster {cluster}; its ProviderConfigs, secrets, role bindings and quota went before it, each on proof"
        );
        (Proof::Gone, how)
    } else {
        (Proof::NotYet, format!("it is {phase} on cluster {cluster}"))
    };
    Line {
        kind: MadeKind::Namespace,
        id: namespace.id,
        name: name.clone(),
        made_at: namespace.made_at,
        proof,
        how,
        at: Some(namespace.updated_at),
        by: None,
        leaks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::deletion::leak::Resolved;
    use crate::fixtures::at;
    use crate::ids::{LeakRecordId, ProvisionedResourceId};

    fn attempt() -> MadeAttempt {
        MadeAttempt {
            id: Uuid::from_u128(1),
            resource: "web-1".to_owned(),
            number: 2,
            composite: "pr-1".to_owned(),
            cluster: Some("east".to_owned()),
            phase: "Deleted".to_owned(),
            phase_since: at(10),
            made_at: at(1),
            absence_proven_at: None,
            abandoned_at: None,
            abandoned_by: None,
            abandoned_reason: None,
            kept: Vec::new(),
        }
    }

    fn leak(kind: &str, resolved: Option<Resolved>) -> Line {
        let id = LeakRecordId::new(Uuid::from_u128(7));
        let leak = Leak {
            id,
            kind: kind.to_owned(),
            finding: None,
            subject: ProvisionedResourceId::new(Uuid::from_u128(1)).into(),
            found_at: at(20),
            last_seen_at: None,
            cluster_id: None,
            cluster: None,
            object_ref: None,
            uid: None,
            evidence: json!({ "external_name": "42", "kind": "Server", "reason": "locked" }),
            removal: None,
            resolved,
        };
        line(&Made::Leak { resource: Some("web-1".to_owned()), leak: Box::new(leak) })
    }

    #[test]
    fn only_what_was_proven_is_said_to_be_gone() {
        let proof = |attempt: MadeAttempt| line(&Made::Attempt(attempt)).proof;
        let proven = MadeAttempt { absence_proven_at: Some(at(40)), ..attempt() };
        assert_eq!(proof(attempt()), Proof::NotYet, "absent once");
        assert_eq!(proof(proven.clone()), Proof::Gone);
        let there = MadeAttempt { phase: "Deprovisioning".to_owned(), ..proven };
        assert_eq!(proof(there), Proof::NotYet, "it is there again");
        let unknown = MadeAttempt { phase: "Archived".to_owned(), ..attempt() };
        assert_eq!(proof(unknown), Proof::NotYet);
        let abandoned = MadeAttempt {
            abandoned_at: Some(at(50)),
            abandoned_by: Some("key:admin".to_owned()),
            abandoned_reason: Some("burnt down".to_owned()),
            ..attempt()
        };
        let abandoned = line(&Made::Attempt(abandoned));
        assert_eq!(
            (abandoned.proof, abandoned.by.as_deref()),
            (Proof::Abandoned, Some("key:admin"))
        );
        assert!(abandoned.how.contains("burnt down"), "{}", abandoned.how);
    }

    #[test]
    fn what_is_left_outside_is_said_with_its_leak() {
        assert_eq!(leak("abandoned_composite", None).proof, Proof::LeakOpen);
        let kept = leak("orphaned_external", None);
        assert_eq!(
            (kept.proof, kept.name.as_str()),
            (Proof::KeptOnPurpose, "orphaned_external Server 42 of web-1")
        );
        assert_eq!(kept.leaks, [Uuid::from_u128(7)]);
        let over = Resolved {
            at: at(60),
            by: Some("key:a".to_owned()),
            resolution: Some("sold".to_owned()),
        };
        let over = leak("orphaned_external", Some(over));
        assert_eq!((over.proof, over.how.as_str()), (Proof::Gone, "resolved: sold"));
    }

    #[test]
    fn a_token_or_a_node_that_can_still_be_used_is_not_gone() {
        let token = MadeToken {
            id: Uuid::from_u128(3),
            resource: "web-1".to_owned(),
            now: at(100),
            issued_at: at(1),
            expires_at: at(200),
            consumed_at: None,
            revoked_at: None,
        };
        let proof = |token: MadeToken| line(&Made::Token(token)).proof;
        assert_eq!(proof(token.clone()), Proof::NotYet);
        assert_eq!(proof(MadeToken { revoked_at: Some(at(5)), ..token.clone() }), Proof::Gone);
        assert_eq!(proof(MadeToken { now: at(200), ..token }), Proof::Gone);
        let node = MadeNode {
            id: Uuid::from_u128(4),
            resource: "web-1".to_owned(),
            hostname: "web-1".to_owned(),
            registered_at: at(1),
            deregistered_at: Some(at(9)),
            how: Some(DeregisteredHow::Acknowledged),
            by: None,
            key_revoked: true,
        };
        let proof = |node: MadeNode| line(&Made::Node(node)).proof;
        assert_eq!(proof(node.clone()), Proof::Gone);
        assert_eq!(proof(MadeNode { key_revoked: false, ..node.clone() }), Proof::NotYet);
        assert_eq!(proof(MadeNode { deregistered_at: None, ..node }), Proof::NotYet);
    }
}
