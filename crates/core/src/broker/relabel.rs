//! Replacing the labels of a resource.

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::BrokerWrite;
use crate::broker::resource::Resource;
use crate::broker::snapshot::ResourceSnapshot;
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::precondition::Expected;
use crate::text::Labels;

/// Labels are for people and selectors, and may become cloud tags of the composite: a
/// change wakes the attempt. A deleted resource keeps its labels.
pub fn relabel(
    snapshot: &ResourceSnapshot,
    labels: &Labels,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let resource = &snapshot.resource;
    expected.check("resource", resource.revision)?;
    if resource.deleted_at.is_some() {
        return Err(Refusal::new(
            ErrorKind::ResourceNotFound,
            format!("resource {} is deleted; its labels stay as they were", resource.id),
        ));
    }
    let subject = About::new(resource.id).of(resource.project_id).at(resource.revision.next());
    let details = json!({ "before": resource.labels, "after": labels });
    let entry = AuditEntry::new("resource.relabel", actor, subject, snapshot.now).with(details);
    let updated = Resource { labels: labels.clone(), ..resource.clone() };
    Ok(Commit {
        writes: vec![Write::Broker(BrokerWrite::ResourceUpdate(updated))],
        audit: vec![entry],
        wakes: vec![snapshot.attempt.id().into()],
        ..Commit::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::phase::Phase;
    use crate::fixtures::{at, mk_actor, mk_snapshot};
    use crate::ids::Revision;

    #[test]
    fn labels_are_replaced_under_the_revision_that_was_read() {
        let snapshot = mk_snapshot(Phase::Ready);
        let labels = Labels::parse([("a".to_owned(), "b".to_owned())].into()).unwrap();
        let expected = Expected::Exactly(snapshot.resource.revision);
        let commit = relabel(&snapshot, &labels, expected, &mk_actor()).unwrap();
        assert_eq!(commit.writes.len(), 1);
        assert_eq!(commit.wakes, [snapshot.attempt.id().into()]);
        let stale = Expected::Exactly(Revision(99));
        let refusal = relabel(&snapshot, &labels, stale, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::RevisionStale);
    }

    #[test]
    fn what_is_gone_keeps_its_labels() {
        let mut snapshot = mk_snapshot(Phase::Deleted);
        snapshot.resource.deleted_at = Some(at(1));
        let refused = relabel(&snapshot, &Labels::default(), Expected::Any, &mk_actor());
        assert_eq!(refused.unwrap_err().kind, ErrorKind::ResourceNotFound);
    }
}
