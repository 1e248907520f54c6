//! Hydrates blueprint versions from rows, by the names of their columns.

use slipway_core::catalog::blueprint_version::{
    BlueprintVersion, CompositeDefinition, CompositeScope, CompositeType, Engine,
    InjectionStrategy, MeshRole,
};
use slipway_core::catalog::parameters::ParameterSchema;
use slipway_core::ids::{BlueprintId, BlueprintVersionId};

use super::{Row, rows};
use crate::fault::Fault;

/// Versions `v` of blueprints `b`, with the columns that [`blueprint_version`] reads and
/// whether they are retired.
macro_rules! select_versions {
    () => {
        "SELECT v.id AS v_id, v.blueprint_id AS v_blueprint_id, b.slug AS v_slug, \
         v.version AS v_version, b.engine AS v_engine, v.api_group AS v_api_group, \
         v.api_version AS v_api_version, v.kind AS v_kind, v.plural AS v_plural, \
         v.scope AS v_scope, v.cloud_tags AS v_cloud_tags, \
         v.own_provider_config AS v_own_provider_config, v.surge AS v_surge, \
         v.composition_name AS v_composition_name, \
         v.parameter_schema AS v_parameter_schema, \
         v.injection_strategy AS v_injection_strategy, v.mesh_role AS v_mesh_role, \
         v.provider_kinds AS v_provider_kinds, v.retired_at AS v_retired_at \
         FROM blueprints b JOIN blueprint_versions v ON v.blueprint_id = b.id "
    };
}
pub(crate) use select_versions;

pub(crate) fn blueprint_version(row: &Row) -> Result<BlueprintVersion, Fault> {
    let composite = composite_definition(row)?;
    let cloud_tags = composite.as_ref().is_some_and(|composite| composite.cloud_tags);
    Ok(BlueprintVersion {
        id: BlueprintVersionId::new(rows::get(row, "v_id")?),
        blueprint_id: BlueprintId::new(rows::get(row, "v_blueprint_id")?),
        slug: rows::get(row, "v_slug")?,
        version: rows::get(row, "v_version")?,
        engine: rows::member(row, "v_engine", Engine::parse)?,
        composite_type: composite.map(|composite| composite.composite_type),
        cloud_tags,
        own_provider_config: rows::get::<i32>(row, "v_own_provider_config")? != 0,
        composition_name: rows::get(row, "v_composition_name")?,
        surge: rows::get::<i32>(row, "v_surge")? != 0,
        parameter_schema: rows::json::<ParameterSchema>(row, "v_parameter_schema")?,
        injection_strategy: rows::member(row, "v_injection_strategy", InjectionStrategy::parse)?,
        mesh_role: rows::member(row, "v_mesh_role", MeshRole::parse)?,
        provider_kinds: rows::json(row, "v_provider_kinds")?,
    })
}

/// `None` if the version has none; all columns are set or none is.
pub(crate) fn composite_definition(row: &Row) -> Result<Option<CompositeDefinition>, Fault> {
    let text = |column: &str| rows::required(rows::get::<Option<String>>(row, column)?, column);
    if rows::get::<Option<String>>(row, "v_kind")?.is_none() {
        return Ok(None);
    }
    let composite_type = CompositeType {
        group: text("v_api_group")?,
        version: text("v_api_version")?,
        kind: text("v_kind")?,
        plural: text("v_plural")?,
        scope: rows::member(row, "v_scope", CompositeScope::parse)?,
    };
    let cloud_tags = rows::get::<Option<i32>>(row, "v_cloud_tags")?.is_some_and(|flag| flag != 0);
    Ok(Some(CompositeDefinition { composite_type, cloud_tags }))
}
