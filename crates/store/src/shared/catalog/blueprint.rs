//! The tables of blueprints and their versions.

use slipway_app::catalog::port::BlueprintKey;
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::catalog::Name;
use slipway_core::catalog::blueprint::{
    Blueprint, BlueprintSnapshot, BlueprintUsers, PublishedVersion, VersionContent,
};
use slipway_core::catalog::blueprint_version::{
    CompositeType, Engine, InjectionStrategy, MeshRole,
};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{BlueprintId, BlueprintVersionId, DeletionId, Revision};
use uuid::Uuid;

use super::broker::users;
use super::page::{after, as_id, by_reference, fetch_one, fetch_page, now};
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::{Connection, Row, rows, version_hydrate};
use crate::failure::Failure;
use crate::fault::Fault;

macro_rules! select_version {
    () => {
        "SELECT id, revision, blueprint_id, version, xrd, composition, parameter_schema, \
         injection_strategy, mesh_role, provider_kinds, install_definitions, own_provider_config, \
         composition_name, surge, published_at, retired_at, \
         api_group AS v_api_group, api_version AS v_api_version, kind AS v_kind, \
         plural AS v_plural, scope AS v_scope, cloud_tags AS v_cloud_tags \
         FROM blueprint_versions "
    };
}

impl Table for Blueprint {
    queries!(
        "blueprints",
        "slug",
        "id, revision, slug, display_name, description, engine, deletion_id, deleted_at, \
         created_at, updated_at"
    );

    /// The lock of the blueprint serialises its publications and retirements. The version
    /// is locked too: declarations lock both for share, so that neither a retirement nor a
    /// deletion misses one. Only a deletion needs the users, and it names no version.
    async fn load(
        connection: &mut Connection,
        key: &BlueprintKey,
    ) -> Result<BlueprintSnapshot, Failure> {
        let blueprint = table::lock::<Self>(connection, &key.blueprint).await?;
        let published = match (&blueprint, &key.version) {
            (Some(blueprint), Some(wanted)) => {
                let statement = concat!(
                    select_version!(),
                    "WHERE (version = $1 OR id = $2) AND blueprint_id = $3",
                    sql!(for_update)
                );
                let query = by_reference(statement, wanted).bind(blueprint.id.as_uuid());
                fetch_one(connection, query, "id", version).await?
            }
            _ => None,
        };
        let users = match (&blueprint, &key.version) {
            (Some(blueprint), None) => users::of_blueprint(connection, blueprint.id).await?,
            _ => BlueprintUsers::default(),
        };
        let now = now(connection).await?;
        Ok(BlueprintSnapshot { now, blueprint, version: published, users })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: BlueprintId::new(rows::get(row, "id")?),
            slug: Name::from_stored(rows::get(row, "slug")?),
            display_name: rows::get(row, "display_name")?,
            description: rows::get(row, "description")?,
            engine: rows::member(row, "engine", Engine::parse)?,
            revision: Revision(rows::get(row, "revision")?),
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

pub(crate) async fn version_fetch(
    connection: &mut Connection,
    (blueprint, wanted): (BlueprintId, &str),
) -> Result<Option<PublishedVersion>, Failure> {
    let query = sqlx::query(concat!(
        select_version!(),
        "WHERE blueprint_id = $1 AND (version = $2 OR id = $3)"
    ))
    .bind(blueprint.as_uuid())
    .bind(wanted)
    .bind(as_id(wanted));
    fetch_one(connection, query, "id", version).await
}

pub(crate) async fn version_list(
    connection: &mut Connection,
    (blueprint, page): (BlueprintId, Page<BlueprintVersionId>),
) -> Result<Listed<PublishedVersion>, Failure> {
    let query = sqlx::query(concat!(
        select_version!(),
        "WHERE blueprint_id = $1 AND id > $2 ORDER BY id LIMIT $3"
    ))
    .bind(blueprint.as_uuid())
    .bind(after(page))
    .bind(i64::from(page.limit));
    fetch_page(connection, query, (BlueprintVersionId::KIND, "id"), page, version).await
}

fn version(row: &Row) -> Result<PublishedVersion, Fault> {
    Ok(PublishedVersion {
        id: BlueprintVersionId::new(rows::get(row, "id")?),
        blueprint_id: BlueprintId::new(rows::get(row, "blueprint_id")?),
        content: VersionContent {
            version: rows::get(row, "version")?,
            xrd: rows::get(row, "xrd")?,
            composition: rows::get(row, "composition")?,
            parameter_schema: rows::json(row, "parameter_schema")?,
            injection_strategy: rows::member(row, "injection_strategy", InjectionStrategy::parse)?,
            mesh_role: rows::member(row, "mesh_role", MeshRole::parse)?,
            provider_kinds: rows::json(row, "provider_kinds")?,
            install_definitions: rows::get::<i32>(row, "install_definitions")? != 0,
            surge: rows::get::<i32>(row, "surge")? != 0,
        },
        composite: version_hydrate::composite_definition(row)?,
        own_provider_config: rows::get::<i32>(row, "own_provider_config")? != 0,
        composition_name: rows::get(row, "composition_name")?,
        revision: Revision(rows::get(row, "revision")?),
        published_at: rows::time(row, "published_at")?,
        retired_at: rows::time_or_null(row, "retired_at")?,
    })
}

pub(crate) const MARKS: Marks = marks!("blueprints", "slug", "NULL");

pub(crate) const INSERT: RowSet<Blueprint> = insert_rows!(guarded, "blueprints", |blueprint: &Blueprint| {
    id: uuid = blueprint.id,
    slug: text = blueprint.slug,
    display_name: text = blueprint.display_name,
    description: text = blueprint.description,
    engine: text = blueprint.engine,
    created_at: time = blueprint.created_at,
    updated_at: time = blueprint.updated_at,
});

pub(crate) const UPDATE: RowSet<Blueprint> = update_rows!(dated, "blueprints" by id, |blueprint: &Blueprint| {
    display_name: text = blueprint.display_name,
    description: text = blueprint.description,
});

const VERSION_INSERT: RowSet<PublishedVersion> = insert_rows!(guarded, "blueprint_versions", |version: &PublishedVersion| {
    id: uuid = version.id,
    blueprint_id: uuid = version.blueprint_id,
    version: text = version.content.version,
    xrd: text = version.content.xrd,
    composition: text = version.content.composition,
    parameter_schema: json = version.content.parameter_schema,
    injection_strategy: text = version.content.injection_strategy,
    mesh_role: text = version.content.mesh_role,
    provider_kinds: json = version.content.provider_kinds,
    published_at: time = version.published_at,
    api_group: text = composite(version).map(|kind| &kind.group),
    api_version: text = composite(version).map(|kind| &kind.version),
    kind: text = composite(version).map(|kind| &kind.kind),
    plural: text = composite(version).map(|kind| &kind.plural),
    scope: text = composite(version).map(|kind| kind.scope),
    cloud_tags: integer = version.composite.as_ref().map(|found| i32::from(found.cloud_tags)),
    install_definitions: integer = i32::from(version.content.install_definitions),
    own_provider_config: integer = i32::from(version.own_provider_config),
    composition_name: text = version.composition_name,
    surge: integer = i32::from(version.content.surge),
});

fn composite(version: &PublishedVersion) -> Option<&CompositeType> {
    version.composite.as_ref().map(|composite| &composite.composite_type)
}

pub(crate) async fn version_insert(
    connection: &mut Connection,
    version: &PublishedVersion,
) -> Result<(), Failure> {
    let exists = |version: &PublishedVersion| {
        Refusal::new(
            ErrorKind::BlueprintVersionExists,
            format!("version `{}` was published a moment ago; read it", version.content.version),
        )
        .at("version")
    };
    VERSION_INSERT.write_guarded(connection, &[version], exists).await
}

/// Retirement is the only change that a version allows.
pub(crate) const VERSION_UPDATE: RowSet<PublishedVersion> = update_rows!(undated, "blueprint_versions" by id, |version: &PublishedVersion| {
    retired_at: time = version.retired_at,
});
