//! Lists read the rows of their answer and not the whole table, with the plans
//! that PostgreSQL keeps: made when the tables were empty, or when they were full.

use slipway_app::broker::port::ResourceFilter;
use slipway_app::deletion::port::DeletionFilter;
use slipway_app::ports::store::Page;
use slipway_core::ids::ProjectId;
use slipway_core::subject::SubjectKind;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _};
use uuid::Uuid;

use super::connect::with_limits;
use super::shared::access::names;
use super::shared::broker::list::{self, Walk};
use super::shared::deletion::{filter, purge};
use super::shared::events::of_project;
use super::shared::{history, migrate};
use crate::id_list::IdList;

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
            SELECT gen_random_uuid(), '{project}', 'r' || n, jsonb_build_object('in', '{name}'::text) {rows}; \
         INSERT INTO deletions (id, kind, target_id, state, requested_by, reason, name, \
            project_id, restorable_until) SELECT gen_random_uuid(), 'resource', id, 'done', 'x', \
            'x', handle, '{project}', now() + interval '30 days' FROM resources \
            WHERE project_id = '{project}'; \
         INSERT INTO outbox_events (id, aggregate_kind, aggregate_id, revision, event_type, \
            project_id, payload) SELECT gen_random_uuid(), 'x', gen_random_uuid(), 1, \
            'x.X', '{project}', '{{}}' {rows}; \
         INSERT INTO event_positions (position, seq, project_id) SELECT seq, seq, project_id \
            FROM outbox_events WHERE project_id = '{project}'; \
         INSERT INTO provisioned_resources (id, resource_id, project_id, blueprint_version_id, \
            cloud_credential_id, attempt, status, xr_name, parameter_values, partition) \
            SELECT gen_random_uuid(), id, '{project}', '{CATALOG}', '{CATALOG}', 1, 'Ready', \
            'x', '{{}}', '{CATALOG}' FROM resources WHERE project_id = '{project}'; \
         INSERT INTO bootstrap_tokens (id, project_id, provisioned_resource_id, kind, hash, \
            expires_at, hard_expires_at) SELECT id, '{project}', id, 'node', \
            decode(md5(id::text), 'hex'), now(), now() FROM provisioned_resources \
            WHERE project_id = '{project}'; \
         INSERT INTO nodes (id, project_id, resource_id, provisioned_resource_id, \
            bootstrap_token_id, hostname, public_key, capabilities, mesh_host, mesh_ip) \
            SELECT gen_random_uuid(), '{project}', r.id, a.id, a.id, 'h' || r.handle, \
            '\\x00', '[]', 1, 'x' FROM provisioned_resources a \
            JOIN resources r ON r.id = a.resource_id WHERE a.project_id = '{project}'; \
         INSERT INTO state_changes (subject_id, revision, to_state, why) \
            SELECT '{project}', n, 'x', 'x' {rows}; \
         INSERT INTO audit_entries (id, actor, verb, subject_kind, subject_id, details, \
            changed_id, changed_revision, to_state, why) SELECT gen_random_uuid(), 'x', 'x', \
            'x', gen_random_uuid(), '{{}}', '{project}', {count} + n, 'x', 'x' {rows}"
    );
    run(connection, insert).await;
}

/// The id of every row of the catalog.
const CATALOG: Uuid = Uuid::from_u128(3);

async fn fill_catalog(connection: &mut sqlx::PgConnection) {
    let insert = format!(
        "INSERT INTO clouds (id, name, provider, endpoint) VALUES ('{CATALOG}', 'x', 'x', '{{}}'); \
         INSERT INTO cloud_credentials (id, cloud_id, name, kv_mount, kv_path) \
            VALUES ('{CATALOG}', '{CATALOG}', 'x', 'x', 'x'); \
         INSERT INTO blueprints (id, slug, display_name, description, engine) \
            VALUES ('{CATALOG}', 'x', 'x', 'x', 'x'); \
         INSERT INTO blueprint_versions (id, blueprint_id, version, xrd, composition, \
            parameter_schema, injection_strategy, mesh_role, provider_kinds) \
            VALUES ('{CATALOG}', '{CATALOG}', 'x', 'x', 'x', '{{}}', 'x', 'x', '[]')"
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
    let (filter, attempts) = (ResourceFilter::default(), IdList(Vec::new()));
    let list = |walk: Walk<'_>| {
        let page = Page { after: None, limit: 100 };
        list::statement(&filter, &walk, None, None, page).sql().as_str().to_owned()
    };
    let deletions = |filter: &DeletionFilter| {
        let page = Page { after: None, limit: 100 };
        filter::query(filter, page).sql().as_str().to_owned()
    };
    let of_own = DeletionFilter { own: Some(ProjectId::new(own)), ..DeletionFilter::default() };
    let named = DeletionFilter { name: Some("r7".to_owned()), ..DeletionFilter::default() };
    let of_id = DeletionFilter { name: Some(own.to_string()), ..DeletionFilter::default() };
    let statements = [
        ("own_events", of_project::OWN.to_owned(), format!("0, '{own}', 100"), 20.0),
        ("own_deletions", deletions(&of_own), format!("'{nil}', '{own}', 100"), 20.0),
        ("last_deletions", deletions(&DeletionFilter::default()), format!("'{late}', 20"), 20.0),
        ("deletions_of", deletions(&named), format!("'{nil}', 'r7', 100"), 3.0),
        ("deletions_of_id", deletions(&of_id), format!("'{nil}', '{own}', 100"), 0.0),
        ("every", list(Walk::All), format!("'{nil}', 20"), 20.0),
        ("handle", list(Walk::Handle("")), format!("'r7', '{nil}', 'r7', 100"), 3.0),
        ("project", list(Walk::Project(own)), format!("'{own}', '{nil}', '{own}', 100"), 20.0),
        ("phase", list(Walk::Phase("")), format!("'Ready', '{nil}', 'Ready', 20"), 20.0),
        ("no_phase", list(Walk::Phase("")), format!("'Failed', '{nil}', 'Failed', 20"), 0.0),
        (
            "label",
            list(Walk::Label(String::new())),
            format!("'in=own', '{nil}', 'in=own', 100"),
            20.0,
        ),
        (
            "no_label",
            list(Walk::Label(String::new())),
            format!("'in=x', '{nil}', 'in=x', 100"),
            0.0,
        ),
        ("blocked", list(Walk::Attempts(attempts)), format!("'{nil}', '{{{own}}}', 100"), 0.0),
        // What is kept costs the loop nothing, however much it is.
        ("due_purges", purge::DUE.to_owned(), "3600000000, 50".to_owned(), 0.0),
        ("history", history::LIST.to_owned(), format!("'{own}', 1000000, 30"), 30.0),
    ];
    let called = |name: &'static str, kind, text: &str, answer| {
        // The driver says what type a parameter has.
        let statement = names::statement(kind).unwrap().replace("$4", "$4::uuid");
        (name, statement, format!("'{text}', '{late}', '{nil}', NULL, 10"), answer)
    };
    let statements = statements.into_iter().chain([
        called("node_of_name", SubjectKind::Node, "hr7", 3.0),
        called("node_of_handle", SubjectKind::Node, "r7", 3.0),
        called("resource_of_handle", SubjectKind::Resource, "r7", 3.0),
        called("no_node", SubjectKind::Node, "x", 0.0),
    ]);
    let statements: Vec<_> = statements.collect();
    fill_catalog(&mut connection).await;
    for (name, statement, parameters, _) in &statements {
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
        // On empty tables the planner prefers to sort; it plans lists of resources anew
        // once the tables were analysed, which autovacuum does as they fill.
        let planned_here = if planned == "empty" { &statements[..3] } else { &statements[..] };
        for (name, _, parameters, answer) in planned_here {
            let explain = format!("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE {name}({parameters})");
            let rows = connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(explain))).await.unwrap();
            let plan: sqlx::types::Json<serde_json::Value> = rows[0].try_get(0).unwrap();
            let plan = &plan.0[0]["Plan"];
            assert_eq!(plan["Actual Rows"], *answer, "{name}: {plan:#}");
            let touched = touched(plan);
            assert!(touched < MOST, "{name}, planned {planned}: {touched} rows: {plan:#}");
        }
    }
    connection.close().await.unwrap();
}
