//! Lists resources by walking an index that has the order of the answer.
//!
//! A filter that leaves few of many resources has an index of its own. The list walks
//! one of these indexes and tests the other filters on the rows that it meets. It
//! compares and orders by the pair of the filtered column and the id: by the id alone a
//! plan may walk all resources and drop those that do not match.
//!
//! Blockers and projects have no such order or may match a few rows only, so the list
//! asks first how many there are.

use std::collections::HashMap;

use serde_json::json;
use slipway_app::broker::port::{Blocked, ResourceFilter};
use slipway_app::ports::store::{CorruptRow, Page};
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::label::LabelSelector;
use slipway_core::ids::{ProjectId, ProvisionedResourceId, ResourceId};
use sqlx::types::Json;
use sqlx::{QueryBuilder, Row as _};
use uuid::Uuid;

use super::page::{after, as_id, now};
use super::reads::Snapshots;
use super::{Connection, Db, snapshot};
use crate::blueprints::Blueprints;
use crate::failure::Failure;
use crate::id_list::IdList;
use crate::micros::Micros;

/// So many rows are cheaper to fetch and sort than an index of everything is to walk.
const FEW: usize = 1_000;

/// The index that a list walks.
#[derive(Debug)]
pub(crate) enum Walk<'f> {
    /// All resources, by id.
    All,
    Handle(&'f str),
    Project(Uuid),
    /// By a label of the resource itself, as `resource_labels` spells it.
    Label(String),
    Phase(&'f str),
    /// These attempts, which are few.
    Attempts(IdList),
}

pub(crate) async fn resource_list(
    connection: &mut Connection,
    (blueprints, filter, page): (&Blueprints, &ResourceFilter, Page<ResourceId>),
) -> Result<Snapshots, Failure> {
    let projects = match &filter.project {
        Some(reference) => Some(projects(connection, reference).await?),
        None => None,
    };
    if projects.as_ref().is_some_and(|projects| projects.0.is_empty()) {
        return Ok(Vec::new());
    }
    let unserved = unserved_before(connection, filter).await?;
    let walk = choose(connection, filter, projects.as_ref(), unserved).await?;
    let mut query = statement(filter, &walk, projects.as_ref(), unserved, page);
    let mut resources = HashMap::new();
    let mut ids = Vec::new();
    for row in query.build().fetch_all(&mut *connection).await? {
        let id = ProvisionedResourceId::new(row.try_get("id")?);
        resources.insert(id, ResourceId::new(row.try_get("resource_id")?));
        ids.push(id);
    }
    hydrated(connection, blueprints, &ids, &resources).await
}

/// The resources, not deleted, of these handles.
pub(crate) async fn resource_named(
    connection: &mut Connection,
    (blueprints, handles): (&Blueprints, &[(ProjectId, String)]),
) -> Result<Snapshots, Failure> {
    let given = handles
        .iter()
        .map(|(project, handle)| json!({ "project_id": project.as_uuid(), "handle": handle }));
    let found = sqlx::query(concat!(
        "SELECT a.id, r.id AS resource_id FROM ",
        rows_from_json!(project_id: uuid, handle: text),
        " JOIN resources r ON r.project_id = given.project_id AND r.handle = given.handle \
         AND r.deleted_at IS NULL JOIN provisioned_resources a ON a.resource_id = r.id \
         WHERE a.attempt = (SELECT max(latest.attempt) FROM provisioned_resources latest \
         WHERE latest.resource_id = r.id AND latest.in_use <> 0)"
    ))
    .bind(Json(given.collect::<Vec<_>>()))
    .fetch_all(&mut *connection)
    .await?;
    let mut resources = HashMap::new();
    for row in &found {
        let id = ProvisionedResourceId::new(row.try_get("id")?);
        resources.insert(id, ResourceId::new(row.try_get("resource_id")?));
    }
    let ids: Vec<_> = resources.keys().copied().collect();
    hydrated(connection, blueprints, &ids, &resources).await
}

/// The snapshots of these attempts, of these resources.
async fn hydrated(
    connection: &mut Connection,
    blueprints: &Blueprints,
    ids: &[ProvisionedResourceId],
    resources: &HashMap<ProvisionedResourceId, ResourceId>,
) -> Result<Snapshots, Failure> {
    let loaded = snapshot::load(blueprints, connection, ids).await?;
    Ok(loaded
        .into_iter()
        .map(|(id, loaded)| {
            loaded.map(ResourceSnapshot::shown).map_err(|fault| CorruptRow {
                id: id.as_uuid(),
                resource_id: resources.get(&id).copied(),
                reason: fault.to_string(),
                seam: fault.seam,
            })
        })
        .collect())
}

/// The most selective index, as far as a few cheap questions tell.
async fn choose<'f>(
    connection: &mut Connection,
    filter: &'f ResourceFilter,
    projects: Option<&IdList>,
    unserved: Option<Micros>,
) -> Result<Walk<'f>, Failure> {
    if let Some(handle) = &filter.handle {
        return Ok(Walk::Handle(handle));
    }
    let project = projects.and_then(|projects| match projects.0[..] {
        [only] => Some(only),
        _ => None,
    });
    if let Some(project) = project {
        let query = sqlx::query("SELECT id FROM resources WHERE project_id = $1 LIMIT $2");
        if few(query.bind(project).bind(limit()).fetch_all(&mut *connection).await?.len()) {
            return Ok(Walk::Project(project));
        }
    }
    if let Some(blocked) = filter.blocked {
        let attempts = blocked_attempts(connection, blocked, unserved).await?;
        if few(attempts.0.len()) {
            return Ok(Walk::Attempts(attempts));
        }
    }
    for selector in &filter.labels {
        if !on_a_project(connection, selector).await? {
            return Ok(Walk::Label(term(selector)));
        }
    }
    Ok(match (&filter.phase, project) {
        (Some(phase), _) => Walk::Phase(phase),
        (None, Some(project)) => Walk::Project(project),
        (None, None) => Walk::All,
    })
}

/// The statement of one page.
pub(crate) fn statement(
    filter: &ResourceFilter,
    walk: &Walk<'_>,
    projects: Option<&IdList>,
    unserved: Option<Micros>,
    page: Page<ResourceId>,
) -> QueryBuilder<Db> {
    // PostgreSQL joins in the written order, so the walked table comes first.
    let from = match walk {
        Walk::All | Walk::Handle(_) | Walk::Project(_) => {
            "resources r JOIN provisioned_resources a ON a.resource_id = r.id"
        }
        Walk::Phase(_) | Walk::Attempts(_) => {
            "provisioned_resources a JOIN resources r ON r.id = a.resource_id"
        }
        Walk::Label(_) => {
            "resource_labels l JOIN resources r ON r.id = l.resource_id \
             JOIN provisioned_resources a ON a.resource_id = r.id"
        }
    };
    let mut query: QueryBuilder<Db> = QueryBuilder::new("SELECT a.id, r.id AS resource_id FROM ");
    query.push(from).push(
        " WHERE a.attempt = (SELECT max(latest.attempt) FROM provisioned_resources latest \
         WHERE latest.resource_id = r.id AND latest.in_use <> 0)",
    );
    let after = after(page);
    /// Only this value of the column, in the order of the id, after the cursor.
    macro_rules! walk {
        ($column:literal, $id:literal, $value:expr) => {{
            query.push(concat!(" AND (", $column, ", ", $id, ") > (")).push_bind($value);
            query.push(", ").push_bind(after).push(concat!(") AND ", $column, " <= "));
            query.push_bind($value);
            concat!($column, ", ", $id)
        }};
    }
    let order = match walk {
        Walk::All => {
            query.push(" AND r.id > ").push_bind(after);
            "r.id"
        }
        Walk::Attempts(attempts) => {
            query.push(" AND r.id > ").push_bind(after).push(" AND a.id ");
            push_one_of(&mut query, attempts);
            "r.id"
        }
        Walk::Handle(handle) => walk!("r.handle", "r.id", *handle),
        Walk::Project(project) => walk!("r.project_id", "r.id", *project),
        Walk::Label(term) => walk!("l.term", "l.resource_id", term.as_str()),
        Walk::Phase(phase) => walk!("a.status", "a.resource_id", *phase),
    };
    push_filters(&mut query, filter, walk, projects, unserved);
    query.push(" ORDER BY ").push(order).push(" LIMIT ").push_bind(i64::from(page.limit));
    query
}

/// The filters that the walk does not answer by itself.
fn push_filters(
    query: &mut QueryBuilder<Db>,
    filter: &ResourceFilter,
    walk: &Walk<'_>,
    projects: Option<&IdList>,
    unserved: Option<Micros>,
) {
    if let Some(projects) = projects.filter(|_| !matches!(walk, Walk::Project(_))) {
        query.push(" AND r.project_id ");
        push_one_of(query, projects);
    }
    if let Some(phase) = filter.phase.as_ref().filter(|_| !matches!(walk, Walk::Phase(_))) {
        query.push(" AND a.status = ").push_bind(phase);
    }
    for selector in &filter.labels {
        // The resource's label overrides the project's, as in the rule of core.
        let key = selector.key.as_str();
        query
            .push(" AND EXISTS (SELECT 1 FROM projects p WHERE p.id = r.project_id AND coalesce(r.labels ->> ")
            .push_bind(key)
            .push(", p.labels ->> ")
            .push_bind(key);
        match &selector.value {
            Some(value) => query.push(") = ").push_bind(value).push(")"),
            None => query.push(") IS NOT NULL)"),
        };
    }
    if let Some(blocked) = filter.blocked.filter(|_| !matches!(walk, Walk::Attempts(_))) {
        query
            .push(
                " AND (EXISTS (SELECT 1 FROM blockers k \
             WHERE k.subject_id IN (a.id, r.surge_from, r.surge_to) AND k.subject_kind = ",
            )
            .push_bind(ProvisionedResourceId::KIND);
        if let Blocked::By(code) = blocked {
            query.push(" AND k.code = ").push_bind(code.as_str());
        }
        query.push(")");
        if let Some(before) = unserved {
            query.push(" OR a.due_at < ").push_bind(before);
        }
        query.push(")");
    }
    if !filter.show_deleted {
        query.push(" AND r.deleted_at IS NULL");
    }
}

/// The live project of this name, and the project with this id.
async fn projects(connection: &mut Connection, reference: &str) -> Result<IdList, Failure> {
    let query =
        sqlx::query("SELECT id FROM projects WHERE (name = $1 AND deleted_at IS NULL) OR id = $2");
    let found = query.bind(reference).bind(as_id(reference)).fetch_all(connection).await?;
    Ok(IdList(found.iter().map(|row| row.try_get("id")).collect::<Result<_, _>>()?))
}

/// Attempts that were due before this time and are not claimed count as blocked, if such
/// are asked for.
async fn unserved_before(
    connection: &mut Connection,
    filter: &ResourceFilter,
) -> Result<Option<Micros>, Failure> {
    let asked =
        matches!(filter.blocked, Some(Blocked::ByAny | Blocked::By(BlockerCode::ClusterNotServed)));
    match filter.unserved_after.filter(|_| asked) {
        Some(after) => Ok(Some(now(connection).await?.minus(after).into())),
        None => Ok(None),
    }
}

/// The blocked attempts, or more than a few of them. One with several blockers may be
/// there more than once.
async fn blocked_attempts(
    connection: &mut Connection,
    blocked: Blocked,
    unserved: Option<Micros>,
) -> Result<IdList, Failure> {
    let query = match blocked {
        Blocked::ByAny => {
            sqlx::query("SELECT subject_id FROM blockers WHERE subject_kind = $1 LIMIT $2")
                .bind(ProvisionedResourceId::KIND)
                .bind(limit())
        }
        Blocked::By(code) => sqlx::query(
            "SELECT subject_id FROM blockers WHERE code = $3 AND subject_kind = $1 LIMIT $2",
        )
        .bind(ProvisionedResourceId::KIND)
        .bind(limit())
        .bind(code.as_str()),
    };
    let mut found = query.fetch_all(&mut *connection).await?;
    if let Some(before) = unserved {
        // By cluster, so that the index of due rows answers.
        let query = sqlx::query(
            "SELECT a.id AS subject_id FROM clusters c \
             JOIN provisioned_resources a ON a.partition = c.id AND a.due_at < $1 \
             WHERE c.deleted_at IS NULL LIMIT $2",
        );
        found.extend(query.bind(before).bind(limit()).fetch_all(&mut *connection).await?);
    }
    let found = found.iter().map(|row| row.try_get("subject_id"));
    let mut found = IdList(found.collect::<Result<_, _>>()?);
    if !found.0.is_empty() && few(found.0.len()) {
        // What blocks one of two attempts blocks their resource.
        let others = sqlx::query(sql!(
            "SELECT r.surge_from, r.surge_to FROM provisioned_resources a \
             JOIN resources r ON r.id = a.resource_id AND r.surge_to IS NOT NULL WHERE a.id ",
            (one_of "$1")
        ));
        for row in others.bind(found.clone()).fetch_all(connection).await? {
            found.0.extend([row.try_get::<Uuid, _>("surge_from")?, row.try_get("surge_to")?]);
        }
    }
    Ok(found)
}

/// Whether resources may inherit a matching label. This reads every project, of which
/// there are far fewer than resources.
async fn on_a_project(
    connection: &mut Connection,
    selector: &LabelSelector,
) -> Result<bool, Failure> {
    let key = selector.key.as_str();
    let query = match &selector.value {
        Some(value) => sqlx::query("SELECT id FROM projects WHERE labels ->> $1 = $2 LIMIT 1")
            .bind(key)
            .bind(value),
        None => {
            sqlx::query("SELECT id FROM projects WHERE labels ->> $1 IS NOT NULL LIMIT 1").bind(key)
        }
    };
    Ok(query.fetch_optional(connection).await?.is_some())
}

fn term(selector: &LabelSelector) -> String {
    let key = selector.key.as_str();
    selector.value.as_ref().map_or_else(|| key.to_owned(), |value| format!("{key}={value}"))
}

fn few(found: usize) -> bool {
    found <= FEW
}

/// Enough rows to tell few from many.
fn limit() -> i64 {
    i64::try_from(FEW + 1).unwrap_or(i64::MAX)
}

fn push_one_of(query: &mut QueryBuilder<Db>, ids: &IdList) {
    let (before, behind) = sql!((one_of "?")).split_once('?').unwrap_or_default();
    query.push(before).push_bind(ids).push(behind);
}
