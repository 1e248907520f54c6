//! Lists deletions. Lists go by id after a cursor, which is stable however the set changes
//! meanwhile.

use slipway_app::deletion::port::{DeletionFilter, Scheduled};
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::deletion::record::Deletion;
use slipway_core::ids::DeletionId;
use sqlx::{QueryBuilder, Row as _};

use super::page::{after, as_id, fetch_one, listed};
use super::reads::select_deletions;
use super::{Connection, Db, hydrate};
use crate::failure::Failure;

/// Of one project, by the index on it, or of all.
pub(crate) fn query(filter: &DeletionFilter, page: Page<DeletionId>) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new(concat!(select_deletions!(), "WHERE id > "));
    query.push_bind(after(page));
    if let Some(own) = filter.own {
        query.push(" AND project_id = ").push_bind(own.as_uuid());
    }
    if let Some(project) = &filter.project {
        query.push(" AND project_id IN (SELECT p.id FROM projects p WHERE p.name = ");
        query.push_bind(project.clone()).push(" OR p.id = ").push_bind(as_id(project)).push(")");
    }
    if let Some(state) = filter.state {
        query.push(" AND state = ").push_bind(state.as_str());
    }
    if let Some(kind) = filter.kind {
        query.push(" AND kind = ").push_bind(kind.as_str());
    }
    if let Some(name) = &filter.name {
        match as_id(name) {
            Some(id) => query.push(" AND target_id = ").push_bind(id),
            None => query.push(" AND name = ").push_bind(name.clone()),
        };
    }
    if let Some(requested_by) = &filter.requested_by {
        query.push(" AND requested_by = ").push_bind(requested_by.clone());
    }
    if filter.restorable {
        query.push(sql!(
            " AND state = 'done' AND kind <> 'provisioned_resource' AND restorable_until > ",
            now
        ));
    }
    if let Some(prefix) = &filter.name_prefix {
        query.push(" AND substr(name, 1, length(").push_bind(prefix.clone());
        query.push(")) = ").push_bind(prefix.clone());
    }
    if let Some(label) = &filter.label {
        query.push(" AND target_id IN (SELECT l.owner_id FROM fleet_labels l WHERE l.label = ");
        query.push_bind(label.clone()).push(")");
    }
    if let Some(generator) = filter.generator.map(|id| id.as_uuid()) {
        query.push(" AND (target_id = ").push_bind(generator);
        query.push(" OR target_id IN (SELECT s.id FROM stacks s WHERE s.generator_id = ");
        query.push_bind(generator);
        query.push(" UNION ALL SELECT t.id FROM fleet_templates t WHERE t.generator_id = ");
        query.push_bind(generator).push("))");
    }
    query.push(" ORDER BY id LIMIT ").push_bind(i64::from(page.limit));
    query
}

pub(crate) async fn list(
    connection: &mut Connection,
    (filter, page): (&DeletionFilter, Page<DeletionId>),
) -> Result<Listed<Deletion>, Failure> {
    let found = query(filter, page).build().fetch_all(connection).await?;
    Ok(listed(DeletionId::KIND, "d_id", &page, &found, hydrate::deletion))
}

pub(crate) async fn scheduled(connection: &mut Connection, (): ()) -> Result<Scheduled, Failure> {
    let next = sqlx::query(concat!(
        select_deletions!(),
        "WHERE state = 'scheduled' ORDER BY scheduled_for, id LIMIT 1"
    ));
    let next = fetch_one(connection, next, "d_id", hydrate::deletion).await?;
    let statement = "SELECT count(*) AS found FROM deletions WHERE state = 'scheduled'";
    let count: i64 = sqlx::query(statement).fetch_one(connection).await?.try_get("found")?;
    Ok(Scheduled { count: u64::try_from(count).unwrap_or_default(), next })
}
