//! A commit over many subjects costs as many statements as one over two.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use slipway_core::Phase;
use slipway_core::access::audit::{About, AuditEntry};
use slipway_core::blocker::{Blocker, BlockerCode};
use slipway_core::broker::declare::{Declaration, declare};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::{BrokerWrite, delete};
use slipway_core::commit::{Commit, Recheck, Release, Write};
use slipway_core::deletion::DeletionWrite;
use slipway_core::deletion::door::{Ask, Door};
use slipway_core::deletion::leak::LeakRecord;
use slipway_core::fixtures::{
    mk_actor, mk_declaration, mk_declare_snapshot, mk_node, mk_snapshot, mk_token,
};
use slipway_core::ids::{
    BootstrapTokenId, ClaimToken, DeletionId, LeakRecordId, NodeId, ProvisionedResourceId,
    ResourceId,
};
use slipway_core::nodes::NodesWrite;
use slipway_core::nodes::mesh::{MeshAddress, MeshCidr};
use slipway_core::nodes::node::Node;
use slipway_core::nodes::token::{BootstrapToken, SecretHash};
use slipway_core::precondition::Expected;
use slipway_core::text::Reason;
use sqlx::{ConnectOptions as _, Executor as _};
use tracing::span;
use uuid::Uuid;

use super::connect::with_limits;
use super::shared::{commit, migrate};

/// Counts the statements that sqlx reports in this thread.
struct Statements(Arc<AtomicUsize>);

impl tracing::Subscriber for Statements {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// One commit of many.
fn merged(commits: impl Iterator<Item = Commit>) -> Commit {
    commits.fold(Commit::default(), |mut all, commit| {
        all.writes.extend(commit.writes);
        all.events.extend(commit.events);
        all.audit.extend(commit.audit);
        all.wakes.extend(commit.wakes);
        all
    })
}

/// A resource that waits for its node, and what each of its rows looks like.
struct Subject {
    resource: ResourceSnapshot,
    token: BootstrapToken,
    node: Node,
    declared: Commit,
}

fn mk_subject(number: u128) -> Subject {
    let id = |kind: u128| Uuid::from_u128(kind << 64 | number);
    let declaration = Declaration {
        resource_id: ResourceId::new(id(1)),
        provisioned_resource_id: ProvisionedResourceId::new(id(2)),
        handle: format!("many-{number}"),
        ..mk_declaration()
    };
    let mut declared = declare(&mk_declare_snapshot(), &declaration, &mk_actor()).unwrap();
    let mut snapshot = mk_snapshot(Phase::Pending);
    for write in &declared.writes {
        match write {
            Write::Broker(BrokerWrite::ResourceInsert(row)) => snapshot.resource = row.clone(),
            Write::Broker(BrokerWrite::AttemptInsert(row)) => snapshot.attempt = row.clone(),
            _ => {}
        }
    }
    let token = BootstrapToken {
        id: BootstrapTokenId::new(id(3)),
        provisioned_resource_id: snapshot.attempt.id(),
        project_id: snapshot.resource.project_id,
        hash: SecretHash::of(&number.to_be_bytes()),
        ..mk_token(900, 1_100, 2_000)
    };
    // A public key and an address have one node each.
    let host = i64::try_from(number).unwrap() + 2;
    let mut public_key = [0; 32];
    public_key[..16].copy_from_slice(&number.to_be_bytes());
    let node = Node {
        id: NodeId::new(id(4)),
        public_key,
        mesh: MeshAddress { host, ip: MeshCidr::DEFAULT.address(host).unwrap() },
        project_id: snapshot.resource.project_id,
        resource_id: snapshot.resource.id,
        provisioned_resource_id: snapshot.attempt.id(),
        bootstrap_token_id: token.id,
        ..mk_node()
    };
    declared.writes.push(Write::Nodes(NodesWrite::TokenInsert(token.clone())));
    snapshot.token = Some(token.clone());
    Subject { resource: snapshot, token, node, declared }
}

/// Writes something of every kind that a cascade multiplies.
fn leaving(subject: &Subject, number: u128) -> Commit {
    let id = |kind: u128| Uuid::from_u128(kind << 64 | number);
    let (snapshot, actor) = (&subject.resource, mk_actor());
    let attempt = snapshot.attempt.id();
    let reason = Reason::parse("the cascade").unwrap();
    let ask = Ask {
        deletion_id: DeletionId::new(id(5)),
        reason,
        expected: Expected::Any,
        grace: None,
        cascade: false,
        keep: false,
        break_glass: false,
        plan: None,
    };
    let requested = delete::request(snapshot, &Door::default(), &ask, &actor).unwrap();
    let mut commit = requested.commit;
    let revoked = |write: &Write| matches!(write, Write::Nodes(NodesWrite::TokenUpdate(_)));
    assert!(commit.writes.iter().any(revoked), "{} is revoked", subject.token.id);
    let blocker = Blocker {
        code: BlockerCode::ApplyFailed,
        message: String::new(),
        since: snapshot.now,
        evidence: json!({}),
        next_retry_at: None,
    };
    let leak = LeakRecord {
        last_known: None,
        id: LeakRecordId::new(id(6)),
        kind: "composite",
        subject: attempt.into(),
        found_at: snapshot.now,
        evidence: json!({}),
    };
    let release = Release {
        subject: attempt.into(),
        claim_token: ClaimToken(0),
        recheck: Recheck::Now,
        failures: 0,
    };
    commit.writes.extend([
        Write::Nodes(NodesWrite::NodeUpdate(subject.node.clone())),
        Write::Broker(BrokerWrite::ObservedReplace(attempt, json!({ "seen": number == 0 }))),
        Write::Deletion(DeletionWrite::LeakInsert(leak)),
        Write::Deletion(DeletionWrite::LeaksResolve(attempt.into())),
        Write::BlockersReplace(attempt.into(), vec![blocker]),
        Write::Release(release),
    ]);
    commit.audit.push(AuditEntry::new(
        "resource.delete",
        &actor,
        About::new(attempt),
        snapshot.now,
    ));
    commit
}

#[tokio::test]
async fn a_commit_of_a_thousand_takes_as_many_statements_as_one_of_two() {
    let Some(server) = slipway_testkit::postgres::shared("commits").await else { return };
    let database = server.database("commits").await;
    let options = with_limits(database.url().parse().unwrap());
    let mut connection = options.connect().await.unwrap();
    migrate::migrate_up(&mut connection).await.unwrap();
    // The catalog that the rows refer to is not what this test is about.
    connection.execute("SET session_replication_role = replica").await.unwrap();

    let project = mk_subject(0).resource.resource.project_id;
    let free = format!(
        "INSERT INTO mesh_addresses (project_id, host) SELECT '{project}', generate_series(2, 1011)"
    );
    connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(free))).await.unwrap();

    let mut counts = Vec::new();
    for (first, number) in [(0, 2), (10, 1_000)] {
        let subjects: Vec<_> = (first..first + number).map(mk_subject).collect();
        let declared = merged(subjects.iter().map(|subject| subject.declared.clone()));
        let leave = merged(subjects.iter().zip(first..).map(|(subject, n)| leaving(subject, n)));
        let counted = Arc::new(AtomicUsize::new(0));
        let guard = tracing::subscriber::set_default(Statements(Arc::clone(&counted)));
        // Another test may have had the place where sqlx reports a statement switched off.
        for _ in 0..100 {
            if counted.swap(0, Ordering::Relaxed) > 0 {
                break;
            }
            tracing::callsite::rebuild_interest_cache();
            connection.execute("SELECT 1").await.unwrap();
        }
        commit::apply(&mut connection, &[declared]).await.unwrap();
        let inserted = counted.load(Ordering::Relaxed);
        for subject in &subjects {
            let insert = Write::Nodes(NodesWrite::NodeInsert(subject.node.clone()));
            let commit = Commit { writes: vec![insert], ..Commit::default() };
            commit::apply(&mut connection, &[commit]).await.unwrap();
        }
        // A loop has claimed them: only a claim that is not released yet can be released.
        let claim = "UPDATE provisioned_resources SET claimed_by = 'test' WHERE revision = 1";
        connection.execute(claim).await.unwrap();
        let enrolled = counted.load(Ordering::Relaxed);
        commit::apply(&mut connection, &[leave]).await.unwrap();
        counts.push((inserted, counted.load(Ordering::Relaxed) - enrolled));
        drop(guard);
    }
    assert_eq!(counts[0], counts[1], "statements of the inserts and of the updates");
    assert!(counts[0].0 > 0 && counts[0].1 > 0, "{counts:?}: sqlx reports no statements");
    assert!(counts[0].0 <= 8 && counts[0].1 <= 16, "{counts:?}");

    // Every row of the large commit was written.
    for (table, condition) in [
        ("resources", "revision = 2 AND deletion_id IS NOT NULL"),
        (
            "provisioned_resources",
            "revision = 2 AND observed IS NOT NULL AND due_at IS NOT NULL AND claimed_by IS NULL",
        ),
        ("nodes", "revision = 2"),
        ("bootstrap_tokens", "revoked_at IS NOT NULL"),
        ("deletions", "state = 'running'"),
        ("leak_records", "resolved_at IS NOT NULL"),
        ("blockers", "code = 'apply_failed'"),
    ] {
        let count = format!("SELECT count(*) FROM {table} WHERE {condition}");
        let row = connection.fetch_one(sqlx::raw_sql(sqlx::AssertSqlSafe(count))).await.unwrap();
        let found: i64 = sqlx::Row::try_get(&row, 0).unwrap();
        assert_eq!(found, 1_002, "{table}");
    }
}
