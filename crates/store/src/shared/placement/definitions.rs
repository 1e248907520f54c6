//! Definitions: which blueprints a cluster needs, and their state there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::Timestamp;
use slipway_core::broker::phase::Phase;
use slipway_core::catalog::blueprint_version::{CompositeType, Engine};
use slipway_core::ids::{BlueprintId, ClusterId, Revision};
use slipway_core::placement::cluster::Cluster;
use slipway_core::placement::definitions::{
    DefinitionPhase, DefinitionsView, Demand, InstalledDefinitions, OtherVersion,
};
use sqlx::Row as _;
use uuid::Uuid;

use super::catalog::version_hydrate;
use super::page::{after, hydrate, listed, now, readable};
use super::row_set::RowSet;
use super::table;
use super::transaction::Load;
use super::{Connection, Row, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

/// Selects the newest version whose definitions are to be installed, by the
/// order in which declarations choose.
macro_rules! newest {
    () => {
        "v.install_definitions = 1 AND v.retired_at IS NULL AND v.kind IS NOT NULL AND NOT EXISTS \
         (SELECT 1 FROM blueprint_versions w WHERE w.blueprint_id = v.blueprint_id \
         AND w.install_definitions = 1 AND w.retired_at IS NULL AND w.kind IS NOT NULL \
         AND (w.published_at > v.published_at \
         OR (w.published_at = v.published_at AND w.id > v.id)))"
    };
}

macro_rules! definitions_columns {
    () => {
        "d.blueprint_id AS d_blueprint_id, d.cluster_id AS d_cluster_id, \
         d.revision AS d_revision, d.wanted_version AS d_wanted_version, \
         d.found_version AS d_found_version, d.phase AS d_phase, d.problem AS d_problem, \
         d.since AS d_since, d.updated_at AS d_updated_at"
    };
}

/// A cluster whose engine has definitions, with a project that is not leaving.
macro_rules! in_use {
    () => {
        "(c.engine = $3 AND EXISTS \
         (SELECT 1 FROM cluster_assignments s JOIN projects p ON p.id = s.project_id \
         WHERE s.cluster_id = c.id AND s.withdrawn_at IS NULL AND p.deleted_at IS NULL))"
    };
}

macro_rules! select {
    () => {
        concat!(
            "SELECT b.id, b.slug, v.version, v.xrd, v.composition, v.composition_name, \
             v.api_group AS v_api_group, v.api_version AS v_api_version, v.kind AS v_kind, v.plural AS v_plural, \
             v.scope AS v_scope, v.cloud_tags AS v_cloud_tags, ",
            definitions_columns!(),
            " FROM blueprints b JOIN blueprint_versions v ON v.blueprint_id = b.id \
             LEFT JOIN blueprint_definitions d ON d.blueprint_id = b.id AND d.cluster_id = $1 \
             WHERE b.deleted_at IS NULL AND ",
            newest!()
        )
    };
}

pub(crate) async fn demands(
    connection: &mut Connection,
    cluster: ClusterId,
) -> Result<Vec<Demand>, Failure> {
    let found = sqlx::query(concat!(select!(), " ORDER BY b.id"))
        .bind(cluster.as_uuid())
        .fetch_all(&mut *connection)
        .await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let now = now(connection).await?;
    let needed = Needed::of(connection, cluster).await?;
    Ok(readable("definitions", &found, |row| demand(row, cluster, now, &needed)))
}

/// Selects versions `v` of blueprints `b` that cluster `$1` needs: those that can still be
/// declared, and those of existing composites there until their absence is proven for good.
macro_rules! needed {
    () => {
        "v.kind IS NOT NULL AND ((v.retired_at IS NULL AND b.deleted_at IS NULL) OR EXISTS \
         (SELECT 1 FROM provisioned_resources a WHERE a.blueprint_version_id = v.id \
         AND a.partition = $1 AND (a.status <> $2 \
         OR (a.absence_proven_at IS NULL AND a.due_at IS NOT NULL))))"
    };
}

/// An API version of a kind: group, plural, version.
type VersionInUse = (String, String, String);

/// A version with a Composition of its own, and the kind of its composites.
type Composed = (OtherVersion, CompositeType);

/// What a cluster needs beside the newest version of each blueprint.
struct Needed {
    /// The API versions that it must go on serving.
    served: Vec<VersionInUse>,
    /// The versions whose Compositions it must have, by blueprint.
    composed: BTreeMap<Uuid, Vec<Result<Composed, Fault>>>,
}

impl Needed {
    async fn of(connection: &mut Connection, cluster: ClusterId) -> Result<Self, Failure> {
        let served = versions_in_use(connection, cluster).await?;
        let found = sqlx::query(concat!(
            "SELECT v.blueprint_id, v.version, v.composition, v.composition_name, \
             v.api_group AS v_api_group, v.api_version AS v_api_version, v.kind AS v_kind, \
             v.plural AS v_plural, v.scope AS v_scope, v.cloud_tags AS v_cloud_tags \
             FROM blueprint_versions v JOIN blueprints b ON b.id = v.blueprint_id \
             WHERE v.composition_name IS NOT NULL AND ",
            needed!(),
            " ORDER BY v.id"
        ))
        .bind(cluster.as_uuid())
        .bind(Phase::Deleted.as_str())
        .fetch_all(connection)
        .await?;
        let mut composed: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for row in &found {
            composed.entry(row.try_get("blueprint_id")?).or_default().push(self::composed(row));
        }
        Ok(Self { served, composed })
    }

    fn served(&self, kind: &CompositeType) -> BTreeSet<String> {
        let of_kind =
            |(group, plural, _): &&VersionInUse| *group == kind.group && *plural == kind.plural;
        self.served.iter().filter(of_kind).map(|(_, _, version)| version.clone()).collect()
    }

    /// The versions of the blueprint beside this one, whose composites are of the same kind.
    fn others(
        &self,
        blueprint: Uuid,
        newest: &str,
        kind: &CompositeType,
    ) -> Result<Vec<OtherVersion>, Fault> {
        let mut others = Vec::new();
        for found in self.composed.get(&blueprint).into_iter().flatten() {
            let (other, of) = found.as_ref().map_err(Clone::clone)?;
            let same = (&of.group, &of.plural, &of.kind) == (&kind.group, &kind.plural, &kind.kind);
            if same && other.version != newest {
                others.push(other.clone());
            }
        }
        Ok(others)
    }
}

fn composed(row: &Row) -> Result<Composed, Fault> {
    let other = OtherVersion {
        version: rows::get(row, "version")?,
        composition: rows::get(row, "composition")?,
        composition_name: rows::get(row, "composition_name")?,
    };
    Ok((other, composite_type(row)?))
}

fn composite_type(row: &Row) -> Result<CompositeType, Fault> {
    let composite = version_hydrate::composite_definition(row)?;
    let missing = || Fault::new("kind", "is missing in a version that installs definitions");
    Ok(composite.ok_or_else(missing)?.composite_type)
}

async fn versions_in_use(
    connection: &mut Connection,
    cluster: ClusterId,
) -> Result<Vec<VersionInUse>, Failure> {
    let found = sqlx::query(concat!(
        "SELECT DISTINCT v.api_group, v.plural, v.api_version FROM blueprint_versions v \
         JOIN blueprints b ON b.id = v.blueprint_id WHERE ",
        needed!()
    ))
    .bind(cluster.as_uuid())
    .bind(Phase::Deleted.as_str())
    .fetch_all(connection)
    .await?;
    let part = |row: &Row, column: &str| row.try_get::<Option<String>, _>(column);
    let kept = found.iter().map(|row| {
        let parts = (part(row, "api_group")?, part(row, "plural")?, part(row, "api_version")?);
        Ok((parts.0.unwrap_or_default(), parts.1.unwrap_or_default(), parts.2.unwrap_or_default()))
    });
    kept.collect::<Result<_, sqlx::Error>>().map_err(Failure::from)
}

/// The API version in which Crossplane reads the composites of a kind: group, plural, version.
/// By cluster and blueprint.
pub(crate) struct ReadAs(HashMap<(Uuid, Uuid), VersionInUse>);

impl ReadAs {
    /// That of the XRD that is there, or that is being brought there.
    pub(crate) async fn of(
        connection: &mut Connection,
        clusters: IdList,
        blueprints: IdList,
    ) -> Result<Self, sqlx::Error> {
        if blueprints.0.is_empty() {
            return Ok(Self::none());
        }
        let found = sqlx::query(sql!(
            "SELECT d.cluster_id, d.blueprint_id, v.api_group, v.plural, v.api_version \
             FROM blueprint_definitions d JOIN blueprint_versions v \
             ON v.blueprint_id = d.blueprint_id \
             AND v.version = COALESCE(d.found_version, d.wanted_version) \
             WHERE v.kind IS NOT NULL AND d.cluster_id ",
            (one_of "$1"),
            " AND d.blueprint_id ",
            (one_of "$2")
        ))
        .bind(clusters)
        .bind(blueprints)
        .fetch_all(connection)
        .await?;
        let read = |row: &Row| {
            let key = (row.try_get("cluster_id")?, row.try_get("blueprint_id")?);
            let kind =
                (row.try_get("api_group")?, row.try_get("plural")?, row.try_get("api_version")?);
            Ok((key, kind))
        };
        found.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn none() -> Self {
        Self(HashMap::new())
    }

    /// `None` if it was not loaded, or if the XRD there is of another kind.
    pub(crate) fn version(
        &self,
        cluster: Uuid,
        blueprint: Uuid,
        kind: &CompositeType,
    ) -> Option<String> {
        let (group, plural, version) = self.0.get(&(cluster, blueprint))?;
        (*group == kind.group && *plural == kind.plural).then(|| version.clone())
    }
}

fn demand(
    row: &Row,
    cluster_id: ClusterId,
    now: Timestamp,
    needed: &Needed,
) -> Result<Demand, Fault> {
    let composite_type = composite_type(row)?;
    let (blueprint, version): (Uuid, String) = (rows::get(row, "id")?, rows::get(row, "version")?);
    Ok(Demand {
        now,
        cluster_id,
        blueprint_id: BlueprintId::new(blueprint),
        slug: rows::get(row, "slug")?,
        others: needed.others(blueprint, &version, &composite_type)?,
        kept: needed.served(&composite_type),
        version,
        xrd: rows::get(row, "xrd")?,
        composition: rows::get(row, "composition")?,
        composition_name: rows::get(row, "composition_name")?,
        composite_type,
        definitions: definitions(row)?,
    })
}

fn definitions(row: &Row) -> Result<Option<InstalledDefinitions>, Fault> {
    let Some(blueprint) = rows::get::<Option<Uuid>>(row, "d_blueprint_id")? else {
        return Ok(None);
    };
    Ok(Some(InstalledDefinitions {
        cluster_id: ClusterId::new(rows::get(row, "d_cluster_id")?),
        blueprint_id: BlueprintId::new(blueprint),
        wanted: rows::get(row, "d_wanted_version")?,
        found: rows::get(row, "d_found_version")?,
        phase: rows::member(row, "d_phase", DefinitionPhase::parse)?,
        problem: rows::get(row, "d_problem")?,
        since: rows::time(row, "d_since")?,
        revision: Revision(rows::get(row, "d_revision")?),
        updated_at: rows::time(row, "d_updated_at")?,
    }))
}

/// A blueprint on a cluster. The lock of the blueprint serialises this with
/// publications and retirements: the version that is decided on stays the
/// newest until the decision commits. The lock of the cluster keeps it from being deleted.
pub(crate) struct DemandOf {
    pub(crate) cluster: ClusterId,
    pub(crate) blueprint: BlueprintId,
}

impl Load for DemandOf {
    type Snapshot = Demand;

    async fn load(&self, connection: &mut Connection) -> Result<Demand, Failure> {
        table::share::<Cluster>(connection, &self.cluster.to_string())
            .await?
            .ok_or(Failure::NotFound { kind: ClusterId::KIND })?;
        sqlx::query(sql!("SELECT id FROM blueprints WHERE id = $1", for_update))
            .bind(self.blueprint.as_uuid())
            .fetch_optional(&mut *connection)
            .await?;
        sqlx::query(sql!("SELECT id FROM clusters WHERE id = $1", for_share))
            .bind(self.cluster.as_uuid())
            .fetch_optional(&mut *connection)
            .await?
            .ok_or(Failure::NotFound { kind: ClusterId::KIND })?;
        let row = sqlx::query(concat!(select!(), " AND b.id = $2"))
            .bind(self.cluster.as_uuid())
            .bind(self.blueprint.as_uuid())
            .fetch_optional(&mut *connection)
            .await?
            .ok_or(Failure::NotFound { kind: "definitions" })?;
        let needed = Needed::of(connection, self.cluster).await?;
        let now = now(connection).await?;
        hydrate(&row, "id", |row| demand(row, self.cluster, now, &needed))
    }
}

pub(crate) async fn list(
    connection: &mut Connection,
    (blueprint, page): (BlueprintId, Page<ClusterId>),
) -> Result<Listed<DefinitionsView>, Failure> {
    let newest = sqlx::query(concat!(
        "SELECT v.version FROM blueprint_versions v JOIN blueprints b ON b.id = v.blueprint_id \
         WHERE b.id = $1 AND b.deleted_at IS NULL AND ",
        newest!()
    ))
    .bind(blueprint.as_uuid())
    .fetch_optional(&mut *connection)
    .await?;
    let newest: Option<String> = newest.map(|row| row.try_get("version")).transpose()?;
    let found = sqlx::query(concat!(
        "SELECT c.id, c.name, CASE WHEN ",
        in_use!(),
        " THEN 1 ELSE 0 END AS in_use, ",
        definitions_columns!(),
        " FROM clusters c LEFT JOIN blueprint_definitions d ON d.cluster_id = c.id \
         AND d.blueprint_id = $1 WHERE c.id > $2 AND (d.cluster_id IS NOT NULL OR ($4 = 1 AND ",
        in_use!(),
        ")) ORDER BY c.id LIMIT $5"
    ))
    .bind(blueprint.as_uuid())
    .bind(after(page))
    .bind(Engine::Crossplane.as_str())
    .bind(i32::from(newest.is_some()))
    .bind(i64::from(page.limit))
    .fetch_all(&mut *connection)
    .await?;
    Ok(listed("definitions", "id", &page, &found, |row| {
        let in_use = rows::get::<i32>(row, "in_use")? != 0;
        Ok(DefinitionsView {
            cluster_id: ClusterId::new(rows::get(row, "id")?),
            cluster: rows::get(row, "name")?,
            wanted: newest.clone().filter(|_| in_use),
            definitions: definitions(row)?,
        })
    }))
}

const INSERT: RowSet<InstalledDefinitions> = insert_rows!(guarded, "blueprint_definitions", |definitions: &InstalledDefinitions| {
    cluster_id: uuid = definitions.cluster_id,
    blueprint_id: uuid = definitions.blueprint_id,
    wanted_version: text = definitions.wanted,
    found_version: text = definitions.found,
    phase: text = definitions.phase,
    problem: text = definitions.problem,
    since: time = definitions.since,
    updated_at: time = definitions.updated_at,
});

const UPDATE: RowSet<InstalledDefinitions> = update_rows!(
    dated,
    "blueprint_definitions" by cluster_id blueprint_id,
    |definitions: &InstalledDefinitions| {
        wanted_version: text = definitions.wanted,
        found_version: text = definitions.found,
        phase: text = definitions.phase,
        problem: text = definitions.problem,
        since: time = definitions.since,
    }
);

pub(crate) async fn insert(
    connection: &mut Connection,
    definitions: &InstalledDefinitions,
) -> Result<(), Failure> {
    INSERT.write_guarded(connection, &[definitions], stale).await
}

pub(crate) async fn update(
    connection: &mut Connection,
    definitions: &InstalledDefinitions,
) -> Result<(), Failure> {
    UPDATE.write_guarded(connection, &[definitions], stale).await
}

fn stale(definitions: &InstalledDefinitions) -> slipway_core::Refusal {
    writes::stale("definitions of blueprint", definitions.blueprint_id, definitions.revision)
}
