//! The tables of blueprints and their versions.

use slipway_app::catalog::port::BlueprintKey;
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::catalog::Name;
use slipway_core::catalog::blueprint::{Blueprint, PublishedVersion, VersionContent};
use slipway_core::catalog::blueprint_version::{Engine, InjectionStrategy, MeshRole};
use slipway_core::catalog::rules::blueprint::BlueprintSnapshot;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{BlueprintId, BlueprintVersionId, Revision};
use sqlx::types::Json;

use super::page::{after, as_id, by_reference, fetch_one, fetch_page, now};
use super::table::{self, Table};
use super::{Connection, Row, rows, version_hydrate, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

macro_rules! select_version {
    () => {
        "SELECT id, revision, blueprint_id, version, xrd, composition, parameter_schema, \
         injection_strategy, mesh_role, provider_kinds, install_definitions, published_at, retired_at, \
         api_group AS v_api_group, api_version AS v_api_version, kind AS v_kind, \
         plural AS v_plural, scope AS v_scope, cloud_tags AS v_cloud_tags \
         FROM blueprint_versions "
    };
}

impl Table for Blueprint {
    queries!(
        removed,
        "blueprints",
        "slug",
        "id, revision, slug, display_name, description, engine, created_at, updated_at"
    );

    /// The lock of the blueprint serialises its publications and retirements. The version
    /// is locked too: declarations lock it for share, and it must not be retired under them.
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
        Ok(BlueprintSnapshot { now: now(connection).await?, blueprint, version: published })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: BlueprintId::new(rows::get(row, "id")?),
            slug: Name::from_stored(rows::get(row, "slug")?),
            display_name: rows::get(row, "display_name")?,
            description: rows::get(row, "description")?,
            engine: rows::member(row, "engine", Engine::parse)?,
            revision: Revision(rows::get(row, "revision")?),
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
        },
        composite: version_hydrate::composite_definition(row)?,
        revision: Revision(rows::get(row, "revision")?),
        published_at: rows::time(row, "published_at")?,
        retired_at: rows::time_or_null(row, "retired_at")?,
    })
}

pub(crate) async fn insert(
    connection: &mut Connection,
    blueprint: &Blueprint,
) -> Result<(), Failure> {
    let query = sqlx::query(
        "INSERT INTO blueprints (id, slug, display_name, description, engine, created_at, \
         updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
    )
    .bind(blueprint.id.as_uuid())
    .bind(blueprint.slug.as_str())
    .bind(&blueprint.display_name)
    .bind(&blueprint.description)
    .bind(blueprint.engine.as_str())
    .bind(Micros::from(blueprint.created_at))
    .bind(Micros::from(blueprint.updated_at));
    table::insert(connection, query, "slug", blueprint.slug.as_str()).await
}

pub(crate) async fn update(
    connection: &mut Connection,
    blueprint: &Blueprint,
) -> Result<(), Failure> {
    let statement = update_sql!("blueprints", "display_name = $3, description = $4");
    let query = table::at_revision(statement, blueprint)
        .bind(&blueprint.display_name)
        .bind(&blueprint.description);
    table::write(connection, query, blueprint).await
}

pub(crate) async fn version_insert(
    connection: &mut Connection,
    version: &PublishedVersion,
) -> Result<(), Failure> {
    let content = &version.content;
    let kind = version.composite.as_ref().map(|composite| &composite.composite_type);
    let inserted = sqlx::query(
        "INSERT INTO blueprint_versions (id, blueprint_id, version, xrd, composition, \
         parameter_schema, injection_strategy, mesh_role, provider_kinds, published_at, \
         api_group, api_version, kind, plural, scope, cloud_tags, install_definitions) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) \
         ON CONFLICT DO NOTHING",
    )
    .bind(version.id.as_uuid())
    .bind(version.blueprint_id.as_uuid())
    .bind(&content.version)
    .bind(&content.xrd)
    .bind(&content.composition)
    .bind(Json(&content.parameter_schema))
    .bind(content.injection_strategy.as_str())
    .bind(content.mesh_role.as_str())
    .bind(Json(&content.provider_kinds))
    .bind(Micros::from(version.published_at))
    .bind(kind.map(|kind| kind.group.as_str()))
    .bind(kind.map(|kind| kind.version.as_str()))
    .bind(kind.map(|kind| kind.kind.as_str()))
    .bind(kind.map(|kind| kind.plural.as_str()))
    .bind(kind.map(|kind| kind.scope.as_str()))
    .bind(version.composite.as_ref().map(|composite| i32::from(composite.cloud_tags)))
    .bind(i32::from(content.install_definitions))
    .execute(connection)
    .await?
    .rows_affected();
    writes::one_row(inserted, || {
        Refusal::new(
            ErrorKind::BlueprintVersionExists,
            format!("version `{}` was published a moment ago; read it", content.version),
        )
        .at("version")
    })
}

/// The only change that a version allows.
pub(crate) async fn version_retire(
    connection: &mut Connection,
    version: &PublishedVersion,
) -> Result<(), Failure> {
    let statement = "UPDATE blueprint_versions SET retired_at = $3, revision = revision + 1 \
         WHERE id = $1 AND revision = $2";
    let query = table::at_revision(statement, version).bind(writes::optional(version.retired_at));
    table::write(connection, query, version).await
}
