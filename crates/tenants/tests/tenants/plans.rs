//! The plans of the hot statements on a table with many jobs, by a connection without any
//! settings of ours, as a pool that the caller has.

use serde::Serialize;
use slipway_tenants::{PostgresStore, StateStore as _};
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _};

const ROWS: &str = "INSERT INTO jobs (id, tenant_id, state, partition) SELECT 'job-' || n, \
     'tenant-' || n, CASE WHEN n % 10 = 0 THEN 'pending' ELSE 'ready' END, 'p' || n % 4 \
     FROM generate_series(1, 20000) AS n";

/// A row of the parameter of `write` and of `known`.
#[derive(Serialize)]
struct ChangeRow {
    key: String,
    tenant: String,
    token: i64,
    from_state: &'static str,
    to_state: &'static str,
    added: i32,
    released: bool,
    is_result: bool,
}

impl ChangeRow {
    fn new(n: u32) -> Self {
        Self {
            key: format!("job-{n}"),
            tenant: format!("tenant-{n}"),
            token: 0,
            from_state: "pending",
            to_state: "schema_created",
            added: 1,
            released: false,
            is_result: true,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hot_statements_use_indexes() {
    let Some(server) = slipway_testkit::postgres::shared("plans").await else { return };
    let database = server.database("plans").await;
    let store = PostgresStore::connect(database.url(), 2, "jobs").expect("a store");
    store.create_table().await.expect("a table");
    let mut raw = PgConnection::connect(database.url()).await.expect("a connection");
    raw.execute(ROWS).await.expect("rows");
    raw.execute("ANALYZE jobs").await.expect("statistics");
    let given: Vec<_> = (1..=50).map(|n| ChangeRow::new(n * 10)).collect();
    let [claim, write, known] = store.hot_statements();
    for mode in ["force_custom_plan", "force_generic_plan"] {
        raw.execute(AssertSqlSafe(format!("SET plan_cache_mode = {mode}"))).await.expect("a mode");
        for (name, sql) in [("claim", claim), ("write", write), ("known", known)] {
            let explain = sqlx::query(AssertSqlSafe(format!("EXPLAIN {sql}"))).persistent(false);
            let explain = match name {
                "claim" => explain.bind("worker").bind(1_000_000_i64).bind(50_i64).bind("p0"),
                _ => explain.bind(Json(&given)),
            };
            let plan = explain.fetch_all(&mut raw).await.expect("a plan");
            let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
            let plan = plan.join("\n");
            assert!(plan.contains("Index"), "{name}, {mode}:\n{plan}");
            assert!(!plan.contains("Seq Scan on jobs"), "{name}, {mode}:\n{plan}");
        }
    }
}
