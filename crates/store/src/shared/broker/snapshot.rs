//! Loads the snapshots of one attempt or of many by the same few statements,
//! each over the whole set: the attempts with their resources, then the related
//! rows, if there are any.
//!
//! A snapshot for a decision is loaded after its resource row was locked, by
//! separate statements: under READ COMMITTED each statement sees what was
//! committed before it began, so nothing older than the lock is read.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use slipway_core::Phase;
use slipway_core::blocker::{Blocker, DeregistrationSeam};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint_version::{BlueprintVersion, Engine};
use slipway_core::deletion::record::Deletion;
use slipway_core::ids::{ClaimToken, GroupId, ProvisionedResourceId, WorkspaceId};
use slipway_core::nodes::node::Node;
use slipway_core::nodes::token::BootstrapToken;
use slipway_core::placement::namespace::Placement;
use slipway_core::topology::next::Waiting;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::catalog::version_hydrate::{self, select_versions};
use super::deletion::reads::select_deletions;
use super::nodes::hydrate::node_columns;
use super::nodes::tokens::select_tokens;
use super::placement::definitions::ReadAs;
use super::placement::hydrate::select_placements;
use super::provider::Providers;
use super::{Connection, Row, blockers, deletion, hydrate, nodes, placement, rows, topology};
use crate::blueprints::Blueprints;
use crate::fault::Fault;
use crate::id_list::IdList;

/// The snapshot of one attempt, or the fault of its rows.
pub(crate) type Loaded = Result<ResourceSnapshot, Fault>;

/// Rows of one kind by the id they are looked up by, each readable or not.
pub(crate) type Found<T> = HashMap<Uuid, Result<T, Fault>>;

macro_rules! attempts_sql {
    () => {
        concat!(
            "SELECT ",
            sql!(now),
            " AS now, a.id AS a_id, a.resource_id AS a_resource_id, \
             a.project_id AS a_project_id, a.blueprint_version_id AS a_blueprint_version_id, \
             a.cloud_credential_id AS a_cloud_credential_id, a.attempt AS a_attempt, \
             a.status AS a_status, a.phase_since AS a_phase_since, \
             a.failure_reason AS a_failure_reason, a.xr_name AS a_xr_name, \
             a.bootstrap_token_id AS a_bootstrap_token_id, \
             a.parameter_values AS a_parameter_values, a.partition AS a_partition, \
             a.deletion_requested_at AS a_deletion_requested_at, a.observed AS a_observed, \
             a.unsettled_since AS a_unsettled_since, a.absence_proven_at AS a_absence_proven_at, \
             a.abandoned_at AS a_abandoned_at, a.kept_outside AS a_kept_outside, \
             a.next_blueprint_version_id AS a_next_blueprint_version_id, \
             a.next_parameter_values AS a_next_parameter_values, \
             a.in_use AS a_in_use, a.hostname AS a_hostname, \
             (SELECT max(n.attempt) FROM provisioned_resources n \
                WHERE n.resource_id = a.resource_id) AS a_latest, \
             a.failures AS a_failures, a.due_at AS a_due_at, a.claim_token AS a_claim_token, \
             a.revision AS a_revision, a.created_at AS a_created_at, \
             a.updated_at AS a_updated_at, r.project_id AS r_project_id, \
             r.handle AS r_handle, r.labels AS r_labels, r.revision AS r_revision, \
             r.deletion_id AS r_deletion_id, r.deleted_at AS r_deleted_at, \
             r.surge_from AS r_surge_from, r.surge_to AS r_surge_to, r.surge_by AS r_surge_by, \
             r.surge_at AS r_surge_at, r.surge_reason AS r_surge_reason, \
             r.surge_retention AS r_surge_retention, \
             r.surge_deletion_id AS r_surge_deletion_id, r.surge_aborted AS r_surge_aborted, \
             r.workspace_id AS r_workspace_id, r.group_id AS r_group_id, \
             r.server_role AS r_server_role, \
             (SELECT w.name FROM workspaces w WHERE w.id = r.workspace_id) AS r_workspace, \
             (SELECT g.name FROM workspace_groups g WHERE g.id = r.group_id) AS r_group, \
             r.created_at AS r_created_at, r.updated_at AS r_updated_at \
             FROM provisioned_resources a JOIN resources r ON r.id = a.resource_id \
             WHERE a.id ",
            sql!((one_of "$1"))
        )
    };
}

/// Loads the snapshots of these attempts, in the given order; unknown ids are left out.
pub(crate) async fn load(
    blueprints: &Blueprints,
    connection: &mut Connection,
    ids: &[ProvisionedResourceId],
) -> Result<Vec<(ProvisionedResourceId, Loaded)>, sqlx::Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut list: IdList = ids.iter().map(|id| id.as_uuid()).collect();
    let mut attempts =
        sqlx::query(attempts_sql!()).bind(list.clone()).fetch_all(&mut *connection).await?;
    let others = others(&attempts)?;
    if !others.0.is_empty() {
        let query = sqlx::query(attempts_sql!()).bind(others.clone());
        attempts.extend(query.fetch_all(&mut *connection).await?);
        list.0.extend(others.0);
    }
    let nodes = sqlx::query(concat!(
        "SELECT ",
        node_columns!(),
        sql!(" FROM nodes WHERE provisioned_resource_id ", (one_of "$1"))
    ))
    .bind(list)
    .fetch_all(&mut *connection)
    .await?;
    let versions = versions_of(blueprints, connection, &attempts).await?;
    let facts = Facts::of(connection, &attempts, &versions).await?;
    load_related(connection, ids, &nodes, &attempts, versions, facts).await
}

/// What composites are rendered from beside the rows of their resources.
struct Facts {
    providers: Providers,
    read_as: ReadAs,
}

impl Facts {
    async fn of(
        connection: &mut Connection,
        attempts: &[Row],
        versions: &Found<Arc<BlueprintVersion>>,
    ) -> Result<Self, sqlx::Error> {
        let providers = Providers::of(connection, made_in_a_cloud(attempts, versions)?).await?;
        let installed = |version: &&Arc<BlueprintVersion>| version.composition_name.is_some();
        let installed = versions.values().flatten().filter(installed);
        let blueprints: BTreeSet<_> =
            installed.map(|version| version.blueprint_id.as_uuid()).collect();
        let clusters = named(attempts, "a_partition")?.into_iter().collect();
        let read_as = ReadAs::of(connection, clusters, blueprints.into_iter().collect()).await?;
        Ok(Self { providers, read_as })
    }

    fn none() -> Self {
        Self { providers: Providers::default(), read_as: ReadAs::none() }
    }
}

/// The second attempts of resources that have two, as far as they are not among these.
fn others(attempts: &[Row]) -> Result<IdList, sqlx::Error> {
    let mut known = BTreeSet::new();
    let mut pairs = Vec::new();
    for row in attempts {
        let id: Uuid = row.try_get("a_id")?;
        known.insert(id);
        pairs.extend(hydrate::pair(row)?.filter(|pair| pair.contains(&id)));
    }
    let others: BTreeSet<Uuid> = pairs.into_iter().flatten().collect();
    Ok(IdList(others.difference(&known).copied().collect()))
}

/// Whether its composite is rendered from the facts of a cloud.
fn is_made_in_a_cloud(version: &BlueprintVersion) -> bool {
    version.engine == Engine::Crossplane
}

/// The attempts whose composites are rendered from the facts of a cloud.
fn made_in_a_cloud(
    attempts: &[Row],
    versions: &Found<Arc<BlueprintVersion>>,
) -> Result<IdList, sqlx::Error> {
    let mut ids = Vec::new();
    for row in attempts {
        let version: Uuid = row.try_get("a_blueprint_version_id")?;
        if let Some(Ok(version)) = versions.get(&version)
            && is_made_in_a_cloud(version)
        {
            ids.push(row.try_get("a_id")?);
        }
    }
    Ok(IdList(ids))
}

async fn versions_of(
    blueprints: &Blueprints,
    connection: &mut Connection,
    attempts: &[Row],
) -> Result<Found<Arc<BlueprintVersion>>, sqlx::Error> {
    versions(blueprints, connection, named(attempts, "a_blueprint_version_id")?).await
}

/// The distinct ids in a column of these attempts.
fn named(attempts: &[Row], column: &str) -> Result<BTreeSet<Uuid>, sqlx::Error> {
    let ids = attempts.iter().map(|row| row.try_get::<Option<Uuid>, _>(column));
    ids.filter_map(Result::transpose).collect()
}

/// The same for decisions. The caller has locked the resources; this locks the
/// nodes and then the attempts, each in one order (nodes not by id alone: that
/// order invites a scan of the whole table). Reading and locking is one
/// statement: it answers what it locked, also after a wait, and a node that it
/// misses could only come from a decision about the same resource.
///
/// The lock of the attempt keeps claims out: a claim that was current when it
/// was read is still current when the decision is written.
///
/// `others` are the second attempts of resources that have two, see [`others_of`]: a
/// decision about one may write the other.
pub(crate) async fn load_locked(
    blueprints: &Blueprints,
    connection: &mut Connection,
    ids: &[ProvisionedResourceId],
    others: &[Uuid],
) -> Result<Vec<(ProvisionedResourceId, Loaded)>, sqlx::Error> {
    let list = ids.iter().map(|id| id.as_uuid()).chain(others.iter().copied());
    let list: IdList = list.collect::<BTreeSet<_>>().into_iter().collect();
    let nodes = sqlx::query(concat!(
        "SELECT ",
        node_columns!(),
        sql!(
            " FROM nodes WHERE provisioned_resource_id ",
            (one_of "$1"),
            " ORDER BY provisioned_resource_id, id",
            for_update
        )
    ))
    .bind(list.clone())
    .fetch_all(&mut *connection)
    .await?;
    let attempts =
        sqlx::query(concat!(attempts_sql!(), sql!(" ORDER BY a.id", (for_update_of "a"))))
            .bind(list)
            .fetch_all(&mut *connection)
            .await?;
    let versions = versions_of(blueprints, connection, &attempts).await?;
    // No decision reads what only rendering needs.
    load_related(connection, ids, &nodes, &attempts, versions, Facts::none()).await
}

async fn load_related(
    connection: &mut Connection,
    ids: &[ProvisionedResourceId],
    nodes: &[Row],
    attempts: &[Row],
    versions: Found<Arc<BlueprintVersion>>,
    facts: Facts,
) -> Result<Vec<(ProvisionedResourceId, Loaded)>, sqlx::Error> {
    use DeregistrationSeam::Node;
    let named = |column: &str| named(attempts, column);
    let placements = placements(connection, named("a_project_id")?).await?;
    let tokens = tokens(connection, named("a_bootstrap_token_id")?).await?;
    let mut marked = named("r_deletion_id")?;
    marked.extend(named("r_surge_deletion_id")?);
    let deletions = deletions(connection, marked).await?;
    let mut blockers = blockers(connection, named("a_id")?).await?;
    let mut nodes = last_nodes(nodes)?;
    let waiting = Box::pin(waiting(connection, attempts)).await?;
    let around = RelatedRows { versions, facts, placements, tokens, deletions, waiting };

    let mut snapshots = HashMap::with_capacity(attempts.len());
    for row in attempts {
        let id: Uuid = row.try_get("a_id")?;
        let node = nodes.remove(&id).transpose().map_err(|fault| fault.of(Node));
        let blockers = blockers.remove(&id).unwrap_or(Ok(Vec::new()));
        let loaded = node.and_then(|node| around.snapshot(row, node, blockers?));
        snapshots.insert(id, loaded.map_err(|fault| named_fault(row, in_teardown(row, fault))));
    }
    let pairs: Vec<[Uuid; 2]> = attempts
        .iter()
        .filter_map(|row| hydrate::pair(row).transpose())
        .collect::<Result<_, _>>()?;
    for [from, to] in pairs {
        pair_up(&mut snapshots, from, to);
    }
    let loaded =
        ids.iter().filter_map(|id| Some((*id, snapshots.remove(&id.as_uuid())?))).collect();
    Ok(loaded)
}

/// What the groups of servers that nothing was made for yet wait for.
async fn waiting(
    connection: &mut Connection,
    attempts: &[Row],
) -> Result<HashMap<GroupId, Vec<Waiting>>, sqlx::Error> {
    let mut workspaces = BTreeSet::new();
    for row in attempts {
        let workspace: Option<Uuid> = row.try_get("r_workspace_id")?;
        let is_pending = row.try_get::<String, _>("a_status")? == Phase::Pending.as_str();
        workspaces.extend(workspace.filter(|_| is_pending).map(WorkspaceId::new));
    }
    topology::waiting::of_groups(connection, workspaces).await
}

/// Shows each of two attempts the other one. A fault of one is a fault of both: no decision
/// about a resource is made from half of it.
fn pair_up(snapshots: &mut HashMap<Uuid, Loaded>, from: Uuid, to: Uuid) {
    let (Some(one), Some(two)) = (snapshots.get(&from), snapshots.get(&to)) else { return };
    let alone = |one: &ResourceSnapshot| Box::new(ResourceSnapshot { other: None, ..one.clone() });
    let (first, second) = match (one, two) {
        (Ok(one), Ok(two)) => (alone(one), alone(two)),
        (Err(fault), Ok(_)) => {
            let fault = fault.clone();
            drop(snapshots.insert(to, Err(fault)));
            return;
        }
        (Ok(_), Err(fault)) => {
            let fault = fault.clone();
            drop(snapshots.insert(from, Err(fault)));
            return;
        }
        (Err(_), Err(_)) => return,
    };
    for (id, other) in [(from, second), (to, first)] {
        if let Some(Ok(snapshot)) = snapshots.get_mut(&id) {
            snapshot.other = Some(other);
        }
    }
}

/// A person looks for the resource by its handle.
fn named_fault(row: &Row, fault: Fault) -> Fault {
    match rows::get::<String>(row, "r_handle") {
        Ok(handle) => fault.in_row(format_args!("resource `{handle}`")),
        Err(_) => fault,
    }
}

/// The fault concerns the deregistration of a node only while the attempt is taken down.
fn in_teardown(row: &Row, fault: Fault) -> Fault {
    let phase = rows::get::<String>(row, "a_status").ok().and_then(|text| Phase::parse(&text));
    let leaving = phase.is_some_and(|phase| phase.is_deletion() && !phase.is_terminal());
    Fault { seam: fault.seam.filter(|_| leaving), ..fault }
}

/// Rows that several attempts may share.
struct RelatedRows {
    versions: Found<Arc<BlueprintVersion>>,
    facts: Facts,
    placements: Found<Option<Placement>>,
    tokens: Found<BootstrapToken>,
    deletions: Found<Deletion>,
    /// By group: what its servers wait for.
    waiting: HashMap<GroupId, Vec<Waiting>>,
}

impl RelatedRows {
    fn snapshot(&self, row: &Row, node: Option<Node>, blockers: Vec<Blocker>) -> Loaded {
        let observed: Option<Json<serde_json::Value>> = rows::get(row, "a_observed")?;
        let attempt = hydrate::attempt(row)?;
        let resource = hydrate::resource(row)?;
        let blueprint = found(&self.versions, Some(attempt.blueprint_version_id().as_uuid()))?
            .ok_or_else(|| Fault::new("blueprint_version_id", "leads to no version"))?;
        let token = attempt.bootstrap_token_id().map(|id| id.as_uuid());
        let token = match (token, found(&self.tokens, token)) {
            (Some(_), Ok(None)) => Err(Fault::new("bootstrap_token_id", "leads to no token")),
            (_, found) => found,
        };
        let token = token.map_err(|fault| fault.of(DeregistrationSeam::Token))?;
        let consumed = token.as_ref().and_then(|token| token.consumed.as_ref());
        if let (Some(consumed), None) = (consumed, &node) {
            let problem = format!("is {}, which the registry does not have", consumed.node_id);
            let fault = Fault::new("consumed_by_node_id", problem).of(DeregistrationSeam::Node);
            let token = attempt.bootstrap_token_id();
            return Err(token.map_or(fault.clone(), |id| fault.in_row(format_args!("token {id}"))));
        }
        // One of two attempts may go while the resource stays.
        let own = resource.surge.as_ref().and_then(|surge| surge.deletion_id);
        let own = found(&self.deletions, own.map(|id| id.as_uuid()))?
            .filter(|deletion| deletion.target == attempt.id().into());
        let deletion = resource.deletion_id.map(|id| id.as_uuid());
        let project = attempt.project_id().as_uuid();
        let credential = attempt.cloud_credential_id().as_uuid();
        let provider = match is_made_in_a_cloud(&blueprint) {
            true => self.facts.providers.facts(project, credential, &resource.labels)?,
            false => None,
        };
        let cluster: Uuid = rows::get(row, "a_partition")?;
        let read_as = blueprint.composite_type.as_ref().and_then(|kind| {
            self.facts.read_as.version(cluster, blueprint.blueprint_id.as_uuid(), kind)
        });
        Ok(ResourceSnapshot {
            now: rows::time(row, "now")?,
            read_as,
            blueprint,
            placement: found(&self.placements, Some(project))?.flatten(),
            provider,
            token,
            presented: None,
            node,
            deletion: match own {
                Some(own) => Some(own),
                None => found(&self.deletions, deletion)?,
            },
            latest: rows::get(row, "a_latest")?,
            other: None,
            blockers,
            claim_token: ClaimToken(rows::get(row, "a_claim_token")?),
            failures: rows::get(row, "a_failures")?,
            observed: observed.map(|observed| observed.0),
            due_at: rows::time_or_null(row, "a_due_at")?,
            kept: rows::json_or_null(row, "a_kept_outside")?.unwrap_or_default(),
            waits_for: match (&resource.owner, attempt.phase()) {
                (Some(owner), Phase::Pending) => {
                    self.waiting.get(&owner.group_id).cloned().unwrap_or_default()
                }
                _ => Vec::new(),
            },
            resource,
            attempt,
        })
    }
}

/// The row of an id: none, readable, or a fault.
fn found<T: Clone>(found: &Found<T>, id: Option<Uuid>) -> Result<Option<T>, Fault> {
    id.and_then(|id| found.get(&id)).cloned().transpose()
}

/// Runs a statement over ids, if there are any.
async fn fetch(
    connection: &mut Connection,
    sql: &'static str,
    ids: BTreeSet<Uuid>,
) -> Result<Vec<Row>, sqlx::Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query(sql).bind(ids.into_iter().collect::<IdList>()).fetch_all(connection).await
}

/// A fault names its row by `noun` and id.
fn by_id<T>(
    rows: &[Row],
    (noun, column): (&str, &str),
    read: impl Fn(&Row) -> Result<T, Fault>,
) -> Result<Found<T>, sqlx::Error> {
    let found = |row: &Row| {
        let id: Uuid = row.try_get(column)?;
        Ok((id, read(row).map_err(|fault| fault.in_row(format_args!("{noun} {id}")))))
    };
    rows.iter().map(found).collect()
}

/// Cached versions are not read again; an unreadable one is read each time,
/// since somebody may repair it.
async fn versions(
    blueprints: &Blueprints,
    connection: &mut Connection,
    ids: BTreeSet<Uuid>,
) -> Result<Found<Arc<BlueprintVersion>>, sqlx::Error> {
    let (mut versions, mut unknown) = (Found::new(), BTreeSet::new());
    for id in ids {
        match blueprints.get(id) {
            Some(version) => drop(versions.insert(id, Ok(version))),
            None => drop(unknown.insert(id)),
        }
    }
    const SQL: &str = concat!(select_versions!(), "WHERE v.id ", sql!((one_of "$1")));
    let rows = fetch(connection, SQL, unknown).await?;
    let read = by_id(&rows, ("blueprint version", "v_id"), |row| {
        version_hydrate::blueprint_version(row).map(Arc::new)
    })?;
    read.values().flatten().for_each(|version| blueprints.keep(version));
    versions.extend(read);
    Ok(versions)
}

async fn placements(
    connection: &mut Connection,
    projects: BTreeSet<Uuid>,
) -> Result<Found<Option<Placement>>, sqlx::Error> {
    const SQL: &str = concat!(select_placements!(), "WHERE s.project_id ", sql!((one_of "$1")));
    let rows = fetch(connection, SQL, projects).await?;
    by_id(&rows, ("placement of project", "project_id"), placement::hydrate::placement)
}

async fn tokens(
    connection: &mut Connection,
    ids: BTreeSet<Uuid>,
) -> Result<Found<BootstrapToken>, sqlx::Error> {
    const SQL: &str = concat!(select_tokens!(), "WHERE t.id ", sql!((one_of "$1")));
    let rows = fetch(connection, SQL, ids).await?;
    by_id(&rows, ("token", "t_id"), nodes::hydrate::token)
}

async fn deletions(
    connection: &mut Connection,
    ids: BTreeSet<Uuid>,
) -> Result<Found<Deletion>, sqlx::Error> {
    const SQL: &str = concat!(select_deletions!(), "WHERE id ", sql!((one_of "$1")));
    let rows = fetch(connection, SQL, ids).await?;
    by_id(&rows, ("deletion", "d_id"), deletion::hydrate::deletion)
}

/// The last enrolled node of each attempt. An attempt has few nodes in its
/// life, so the earlier ones are read and skipped. An unreadable node counts as
/// the last one of its attempt.
fn last_nodes(rows: &[Row]) -> Result<Found<Node>, sqlx::Error> {
    let mut last: Found<Node> = Found::with_capacity(rows.len());
    for row in rows {
        let attempt = row.try_get("provisioned_resource_id")?;
        let id: Uuid = row.try_get("id")?;
        let node = nodes::hydrate::node(row);
        let node = node.map_err(|fault| fault.in_row(format_args!("node {id}")));
        let later = match (last.get(&attempt), &node) {
            (Some(Ok(known)), Ok(node)) => {
                (known.registered_at, known.id) < (node.registered_at, node.id)
            }
            (Some(Err(_)), _) => false,
            (None, _) | (_, Err(_)) => true,
        };
        if later {
            last.insert(attempt, node);
        }
    }
    Ok(last)
}

pub(crate) async fn blockers(
    connection: &mut Connection,
    attempts: BTreeSet<Uuid>,
) -> Result<Found<Vec<Blocker>>, sqlx::Error> {
    if attempts.is_empty() {
        return Ok(Found::new());
    }
    let found = sqlx::query(sql!(
        "SELECT subject_id, code, since, message, evidence, next_retry_at FROM blockers \
         WHERE subject_kind = $1 AND subject_id ",
        (one_of "$2"),
        " ORDER BY subject_id, code"
    ))
    .bind(ProvisionedResourceId::KIND)
    .bind(attempts.into_iter().collect::<IdList>())
    .fetch_all(connection)
    .await?;
    let mut blockers: Found<Vec<Blocker>> = Found::new();
    for row in &found {
        let of_subject = blockers.entry(row.try_get("subject_id")?).or_insert(Ok(Vec::new()));
        match (of_subject.as_mut(), blockers::hydrate(row)) {
            (Ok(list), Ok(blocker)) => list.push(blocker),
            (Ok(_), Err(fault)) => *of_subject = Err(fault),
            (Err(_), _) => {}
        }
    }
    Ok(blockers)
}
