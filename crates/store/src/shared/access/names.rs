//! Names of things of every kind, and what has a name: each room says it of its own tables.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use slipway_core::ids::ProjectId;
use slipway_core::operations::reference::Candidate;
use slipway_core::subject::SubjectKind;
use sqlx::Row as _;
use uuid::Uuid;

use super::broker::named::{broker_names, handle_of, handle_of_attempt};
use super::catalog::named::catalog_names;
use super::events::named::subscription_names;
use super::fleet::named::fleet_names;
use super::nodes::named::node_names;
use super::placement::named::cluster_names;
use super::tenants::named::tenant_names;
use super::topology::named::workspace_names;
use super::{
    Connection, broker, catalog, deletion, fleet, nodes, placement, rollouts, tenants, topology,
};
use crate::failure::Failure;
use crate::id_list::IdList;

/// More than a person can tell apart.
const MOST: i64 = 10;

pub(crate) async fn names(
    connection: &mut Connection,
    ids: &[Uuid],
) -> Result<BTreeMap<Uuid, String>, Failure> {
    const NAMES: &str = concat!(
        catalog_names!(),
        " UNION ALL ",
        cluster_names!(),
        " UNION ALL ",
        broker_names!(),
        " UNION ALL ",
        node_names!(),
        " UNION ALL ",
        names_of!("api_keys d", "d.name"),
        " UNION ALL ",
        subscription_names!(),
        " UNION ALL ",
        fleet_names!(),
        " UNION ALL ",
        tenant_names!(),
        " UNION ALL ",
        workspace_names!(),
    );
    let list: IdList = ids.iter().copied().collect();
    let found = sqlx::query(NAMES).bind(list).fetch_all(connection).await?;
    let mut names = BTreeMap::new();
    for row in &found {
        names.insert(row.try_get("id")?, row.try_get("name")?);
    }
    Ok(names)
}

pub(crate) async fn candidates(
    connection: &mut Connection,
    (kind, name, ids, within): (SubjectKind, &str, &RangeInclusive<Uuid>, Option<ProjectId>),
) -> Result<Vec<Candidate>, Failure> {
    let Some(statement) = statement(kind) else { return Ok(Vec::new()) };
    let found = sqlx::query(statement)
        .bind(name)
        .bind(*ids.start())
        .bind(*ids.end())
        .bind(within.map(|project| project.as_uuid()))
        .bind(MOST)
        .fetch_all(connection)
        .await?;
    let candidate = |row: &super::Row| {
        Ok(Candidate {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            is_named: row.try_get::<i32, _>("named")? == 1,
            is_live: row.try_get::<i32, _>("live")? == 1,
        })
    };
    found.iter().map(candidate).collect()
}

/// `None` for a kind that nobody names.
pub(crate) fn statement(kind: SubjectKind) -> Option<&'static str> {
    Some(match kind {
        SubjectKind::Project => catalog::named::PROJECTS,
        SubjectKind::Cloud => catalog::named::CLOUDS,
        SubjectKind::Credential => catalog::named::CREDENTIALS,
        SubjectKind::Blueprint => catalog::named::BLUEPRINTS,
        SubjectKind::Label => catalog::named::LABELS,
        SubjectKind::Cluster => placement::named::CLUSTERS,
        SubjectKind::Resource => broker::named::RESOURCES,
        SubjectKind::ProvisionedResource => broker::named::ATTEMPTS,
        SubjectKind::Node => nodes::named::NODES,
        SubjectKind::BootstrapToken => nodes::named::TOKENS,
        SubjectKind::Deletion => deletion::named::DELETIONS,
        SubjectKind::LeakRecord => deletion::named::LEAKS,
        SubjectKind::ApiKey => KEYS,
        SubjectKind::Rollout => rollouts::named::ROLLOUTS,
        SubjectKind::Generator => fleet::named::GENERATORS,
        SubjectKind::Stack => fleet::named::STACKS,
        SubjectKind::Template => fleet::named::TEMPLATES,
        SubjectKind::Agent => fleet::named::AGENTS,
        SubjectKind::TenantProfile => tenants::named::PROFILES,
        SubjectKind::Tenant => tenants::named::TENANTS,
        SubjectKind::Workspace => topology::named::WORKSPACES,
        _ => return None,
    })
}

const KEYS: &str = called!(
    "api_keys",
    "d.name",
    "SELECT id FROM api_keys WHERE name = $1",
    "d.revoked_at IS NULL",
    "d.project_id = $4"
);
