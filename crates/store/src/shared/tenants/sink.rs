//! The edge sink: in the transaction that writes the edges of jobs, their tenants follow, with
//! event, audit entry and history.

use std::collections::HashMap;

use async_trait::async_trait;
use slipway_core::access::audit::Actor;
use slipway_core::commit::Commit;
use slipway_core::tenants::job::{Followed, JobState, follow};
use slipway_core::tenants::tenant::Tenant;
use slipway_tenants::{Edge, EdgeSink};
use uuid::Uuid;

use super::page::{now, readable};
use super::table::Table;
use super::tenant::select;
use super::{Connection, Db, commit};
use crate::failure::Failure;
use crate::id_list::IdList;

#[derive(Debug)]
pub(crate) struct Sink;

#[async_trait]
impl EdgeSink<Db> for Sink {
    async fn write(&self, connection: &mut Connection, edges: &[Edge]) -> Result<(), sqlx::Error> {
        match written(connection, edges).await {
            Ok(()) => Ok(()),
            Err(Failure::Database(error)) => Err(error),
            // Somebody wrote the tenant between its lock and its update, which cannot be.
            Err(other) => Err(sqlx::Error::Protocol(format!("{other:?}"))),
        }
    }
}

async fn written(connection: &mut Connection, edges: &[Edge]) -> Result<(), Failure> {
    let mut jobs: HashMap<Uuid, Followed> = HashMap::new();
    for edge in edges {
        // Insertions are ours. A row that somebody else inserted has no tenant here.
        let (Some(from), Ok(tenant)) = (edge.from, edge.job.tenant_id.parse::<Uuid>()) else {
            continue;
        };
        let state = |state: slipway_tenants::State| JobState::parse(state.as_str());
        let (Some(from), Some(to), Ok(job_id)) = (state(from), state(edge.to), edge.job.id.parse())
        else {
            continue;
        };
        let (leaked, is_retry) = (edge.job.leaked.clone(), edge.job.retry_of.is_some());
        let version = edge.job.metadata.get("version").cloned();
        let first = || Followed { job_id, from, to: Vec::new(), version, leaked, is_retry };
        jobs.entry(tenant).or_insert_with(first).to.push(to);
    }
    let ids: IdList = jobs.keys().copied().collect();
    let found = sqlx::query(concat!(
        select!(),
        "WHERE t.id ",
        sql!((one_of "$1")),
        " ORDER BY t.id",
        sql!(for_update)
    ));
    let found = found.bind(ids).fetch_all(&mut *connection).await?;
    let (now, actor) = (now(connection).await?, Actor::new("loop:tenants"));
    let commit =
        |tenant: Tenant| follow(&tenant, jobs.get(&tenant.id.as_uuid())?, &actor, now).into();
    let commits: Vec<Commit> =
        readable("tenant", &found, Tenant::read).into_iter().filter_map(commit).collect();
    commit::apply(connection, &commits).await
}
