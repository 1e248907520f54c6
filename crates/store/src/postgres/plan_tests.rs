//! Lists read the rows of their answer and not the whole table, with the plans
//! that PostgreSQL keeps: made when the tables were empty, or when they were full.

use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _};
use uuid::Uuid;

use super::connect::with_limits;
use super::shared::access::scope;
use super::shared::broker::reads;
use super::shared::migrate;

/// Twice as many rows belong to other projects; enough to tell from a page.
const STRANGERS: u32 = 5_000;

/// A few times the rows of the answer, since each step of a plan counts its rows.
const MOST: f64 = 500.0;

/// The rows that a plan touched, whether it answered them or not.
fn touched(plan: &serde_json::Value) -> f64 {
    let number = |name: &str| plan[name].as_f64().unwrap_or(0.0);
    let own = number("Actual Rows") + number("Rows Removed by Filter");
    let below = plan["Plans"].as_array().into_iter().flatten().map(touched);
    own * number("Actual Loops") + below.sum::<f64>()
}

async fn run(connection: &mut sqlx::PgConnection, statement: String) {
    connection.execute(sqlx::raw_sql(AssertSqlSafe(statement))).await.unwrap();
}

async fn fill(connection: &mut sqlx::PgConnection, project: Uuid, name: &str, count: u32) {
    let rows = format!("FROM generate_series(1, {count}) n");
    let insert = format!(
        "INSERT INTO projects (id, name) VALUES ('{project}', '{name}'); \
         INSERT INTO resources (id, project_id, handle, labels) \
            SELECT gen_random_uuid(), '{project}', 'r' || n, '{{}}' {rows}; \
         INSERT INTO deletions (id, kind, target_id, state, requested_by, reason, members) \
            SELECT gen_random_uuid(), 'resource', id, 'done', 'x', 'x', '[]' FROM resources \
            WHERE project_id = '{project}'; \
         INSERT INTO outbox_events (id, aggregate_kind, aggregate_id, revision, event_type, \
            project_id, payload) SELECT gen_random_uuid(), 'x', gen_random_uuid(), 1, \
            'x.X', '{project}', '{{}}' {rows}; \
         INSERT INTO event_positions (position, seq, project_id) SELECT seq, seq, project_id \
            FROM outbox_events WHERE project_id = '{project}'"
    );
    run(connection, insert).await;
}

#[tokio::test]
async fn a_list_reads_what_it_answers() {
    let Some(server) = slipway_testkit::postgres::shared("plans").await else { return };
    let database = server.database("plans").await;
    let options = with_limits(database.url().parse().unwrap());
    let mut connection = options.connect().await.unwrap();
    migrate::migrate_up(&mut connection).await.unwrap();
    let (own, nil) = (Uuid::from_u128(7), Uuid::nil());
    let late = Uuid::from_u128(u128::MAX / 100 * 99);
    let statements = [
        ("own_events", scope::EVENTS, format!("0, '{own}', 100")),
        ("own_deletions", scope::DELETIONS, format!("'{own}', '{nil}', 100")),
        ("last_deletions", reads::DELETIONS, format!("'{late}', 20")),
    ];
    for (name, statement, parameters) in &statements {
        run(&mut connection, format!("PREPARE {name} AS {statement}")).await;
        run(&mut connection, format!("EXECUTE {name}({parameters})")).await;
    }
    fill(&mut connection, Uuid::from_u128(1), "before", STRANGERS).await;
    fill(&mut connection, own, "own", 20).await;
    fill(&mut connection, Uuid::from_u128(9), "behind", STRANGERS).await;
    for planned in ["empty", "full"] {
        if planned == "full" {
            // ANALYZE also discards the existing plans.
            run(&mut connection, "ANALYZE".to_owned()).await;
        }
        for (name, _, parameters) in &statements {
            let explain = format!("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE {name}({parameters})");
            let rows = connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(explain))).await.unwrap();
            let plan: sqlx::types::Json<serde_json::Value> = rows[0].try_get(0).unwrap();
            let plan = &plan.0[0]["Plan"];
            assert_eq!(plan["Actual Rows"], 20.0, "{name}: {plan:#}");
            let touched = touched(plan);
            assert!(touched < MOST, "{name}, planned {planned}: {touched} rows: {plan:#}");
        }
    }
    connection.close().await.unwrap();
}
