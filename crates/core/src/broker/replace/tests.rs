//! Tests of replacements.

use std::collections::BTreeMap;

use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::broker::BrokerWrite;
use crate::broker::phase::Phase;
use crate::broker::retry;
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::protection::Protection;
use crate::fixtures::{at, mk_actor, mk_declare_snapshot, mk_snapshot};
use crate::ids::DeletionId;
use crate::precondition::Expected;
use crate::text::Reason;

fn snapshot(phase: Phase) -> Doored<RedeclareSnapshot> {
    let (resource, declared) = (mk_snapshot(phase), mk_declare_snapshot());
    let of = RedeclareSnapshot { resource, project: "default".to_owned(), declared };
    Doored { of, door: Door::default() }
}

fn replace(snapshot: &Doored<RedeclareSnapshot>) -> Result<Commit, Refusal> {
    let ask = Ask {
        deletion_id: DeletionId::new(Uuid::from_u128(500)),
        reason: Reason::parse("another zone").unwrap(),
        expected: Expected::Any,
        grace: None,
        cascade: false,
        keep: false,
        break_glass: false,
        plan: None,
    };
    let parameters = BTreeMap::from([("busy_seconds".to_owned(), json!(7))]);
    let corrections = Corrections { version: None, parameters };
    request(snapshot, &corrections, &ask, &mk_actor()).map(|requested| requested.commit)
}

/// The one mechanism of a retry, in every phase that is not leaving.
#[test]
fn a_replacement_takes_the_attempt_down_and_the_next_one_has_the_corrections() {
    for &phase in Phase::ALL {
        let found = snapshot(phase);
        let commit = match replace(&found) {
            Ok(commit) => commit,
            Err(refusal) => {
                assert!(phase.is_deletion(), "{phase}: {refusal}");
                assert_eq!(refusal.kind, ErrorKind::Leaving);
                continue;
            }
        };
        assert!(!phase.is_deletion());
        assert_eq!(commit.audit[0].verb, "resource.replace");
        assert_eq!(commit.audit[0].details["changed"], json!({ "parameters": ["busy_seconds"] }));
        let (mut leaving, mut deletion) = (None, None);
        for write in &commit.writes {
            match write {
                Write::Broker(BrokerWrite::AttemptUpdate(attempt)) => leaving = Some(attempt),
                Write::Deletion(DeletionWrite::DeletionInsert(found)) => deletion = Some(found),
                _ => {}
            }
        }
        let deletion = deletion.unwrap();
        assert_eq!((Scope::of(deletion), deletion.resources), (Scope::Attempt, 1));
        let mut gone = found.of.resource.clone();
        gone.attempt = leaving.unwrap().clone();
        let next = retry::successor(&gone).unwrap();
        assert_eq!(next.parameter_values().as_map()["busy_seconds"], 7);
        assert_eq!(next.attempt(), found.of.resource.attempt.attempt() + 1);
    }
}

#[test]
fn what_is_protected_is_not_replaced() {
    let mut found = snapshot(Phase::Ready);
    let resource = &found.of.resource.resource;
    found.door.protections.push(Protection {
        subject: resource.id.into(),
        project_id: Some(resource.project_id),
        name: resource.handle.to_string(),
        set_by: "key:owner".to_owned(),
        reason: "it has the ledger".to_owned(),
        set_at: at(1),
        lifted: None,
    });
    assert_eq!(replace(&found).unwrap_err().kind, ErrorKind::Protected);
}
