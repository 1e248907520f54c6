//! Events and audit entries in the transaction of the edges, as the service writes them: one
//! row of each for every edge, by sets.

use async_trait::async_trait;
use serde::Serialize;
use slipway_tenants::{Edge, EdgeSink};
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};

#[derive(Debug)]
pub(super) struct Outbox;

#[derive(Serialize)]
struct Row<'a> {
    job: &'a str,
    tenant: &'a str,
    from_state: Option<&'static str>,
    to_state: &'static str,
}

const TABLES: [&str; 2] = [
    "CREATE TABLE events (position bigserial PRIMARY KEY, job text NOT NULL, tenant text NOT NULL, \
     from_state text, to_state text NOT NULL, at timestamptz NOT NULL DEFAULT now(), \
     UNIQUE (job, to_state))",
    "CREATE TABLE audit (id bigserial PRIMARY KEY, job text NOT NULL, tenant text NOT NULL, \
     from_state text, to_state text NOT NULL, at timestamptz NOT NULL DEFAULT now())",
];
const EVENTS: &str = "INSERT INTO events (job, tenant, from_state, to_state) SELECT job, tenant, \
     from_state, to_state FROM jsonb_to_recordset($1) AS given (job text, tenant text, \
     from_state text, to_state text)";
const AUDIT: &str = "INSERT INTO audit (job, tenant, from_state, to_state) SELECT job, tenant, \
     from_state, to_state FROM jsonb_to_recordset($1) AS given (job text, tenant text, \
     from_state text, to_state text)";

pub(super) async fn create(pool: &PgPool) -> anyhow::Result<()> {
    for table in TABLES {
        sqlx::query(table).execute(pool).await?;
    }
    Ok(())
}

pub(super) async fn counts(pool: &PgPool) -> anyhow::Result<[(&'static str, i64); 2]> {
    let events = sqlx::query_scalar("SELECT count(*) FROM events").fetch_one(pool).await?;
    let audit = sqlx::query_scalar("SELECT count(*) FROM audit").fetch_one(pool).await?;
    Ok([("events", events), ("audit", audit)])
}

#[async_trait]
impl EdgeSink<sqlx::Postgres> for Outbox {
    async fn write(
        &self,
        connection: &mut PgConnection,
        edges: &[Edge],
    ) -> Result<(), sqlx::Error> {
        let row = |edge: &'_ Edge| -> (Option<&'static str>, &'static str) {
            (edge.from.map(slipway_tenants::State::as_str), edge.to.as_str())
        };
        let rows: Vec<_> = edges
            .iter()
            .map(|edge| {
                let (from_state, to_state) = row(edge);
                Row { job: &edge.job.id, tenant: &edge.job.tenant_id, from_state, to_state }
            })
            .collect();
        for statement in [EVENTS, AUDIT] {
            sqlx::query(statement).bind(Json(&rows)).execute(&mut *connection).await?;
        }
        Ok(())
    }
}
