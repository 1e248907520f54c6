//! The order of removal: the node, then its composite.

use jiff::Timestamp;
use serde_json::Value;
use slipway_testkit::kube::AuditRecord;

/// By the API server's audit log, the DELETE of this composite is later than
/// the node's deregistration and than the agent's own record of its leave.
pub(crate) fn assert_left_first(
    composite: &str,
    deregistered_at: &Value,
    journal: &[Value],
    records: &[AuditRecord],
    plural: &str,
) {
    let deregistered = time(deregistered_at);
    let left =
        journal.iter().find(|line| line["composite"] == *composite && line["entry"] == "leaving");
    let left = time(&left.unwrap_or_else(|| panic!("{composite} left no record"))["at"]);
    let deletes: Vec<_> = records
        .iter()
        .filter(|record| record.verb == "delete" && record.is_about(plural))
        .filter(|record| record.object.as_ref().is_some_and(|object| object.name == *composite))
        .collect();
    assert!(!deletes.is_empty(), "{composite} was deleted by nobody");
    for delete in deletes {
        assert!(delete.received > deregistered, "{delete:?} before {deregistered}");
        assert!(delete.received > left, "{delete:?} before {left}");
    }
}

fn time(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is no time"));
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}
