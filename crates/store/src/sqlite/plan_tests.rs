//! What a person names is found by an index, however many rows there are.

use slipway_core::subject::SubjectKind;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use super::Connection;
use super::shared::access::names;
use super::shared::deletion::purge;
use super::shared::migrate;

/// These have a few rows, and no index for the names of deleted ones.
const FEW: [SubjectKind; 7] = [
    SubjectKind::Label,
    SubjectKind::Project,
    SubjectKind::Cloud,
    SubjectKind::Credential,
    SubjectKind::Cluster,
    SubjectKind::Blueprint,
    SubjectKind::TenantProfile,
];

#[tokio::test]
async fn what_is_named_is_found_by_an_index() {
    let mut connection = Connection::connect("sqlite::memory:").await.unwrap();
    migrate::migrate_up(&mut connection).await.unwrap();
    let mut explained = 0;
    for kind in SubjectKind::ALL.iter().filter(|kind| !FEW.contains(kind)) {
        let Some(statement) = names::statement(*kind) else { continue };
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
        let plan = sqlx::query(explain).fetch_all(&mut connection).await.unwrap();
        let steps: Vec<String> = plan.iter().map(|row| row.get("detail")).collect();
        let scans = |step: &&String| step.starts_with("SCAN") && !step.contains("CONSTANT ROW");
        assert_eq!(steps.iter().find(scans), None, "{kind}: {steps:#?}");
        explained += 1;
    }
    assert!(explained > 5, "{explained}");
}

/// What is kept costs the loop nothing, however much it is.
#[tokio::test]
async fn what_is_due_for_a_purge_is_found_by_an_index() {
    let mut connection = Connection::connect("sqlite::memory:").await.unwrap();
    migrate::migrate_up(&mut connection).await.unwrap();
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", purge::DUE));
    let plan = sqlx::query(explain).fetch_all(&mut connection).await.unwrap();
    let steps: Vec<String> = plan.iter().map(|row| row.get("detail")).collect();
    let index = |name: &str| steps.iter().any(|step| step.contains(name));
    assert!(index("deletions_restorable_until_index"), "{steps:#?}");
    assert!(index("deletions_purging_index"), "{steps:#?}");
}
