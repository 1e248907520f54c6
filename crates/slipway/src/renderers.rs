//! Renderers and checks that the client runs itself, from the same crates that
//! the server uses.

use std::path::PathBuf;

use serde_json::Value;
use slipway_cli::{DaemonSet, MachineConfig, Pending, Renderers};
use slipway_cluster::{Access, Connection, Listing, ObjectRef, Version, api_resource};
use slipway_core::catalog::Name;
use slipway_core::catalog::blueprint::VersionContent;
use slipway_core::catalog::blueprint_version::{CompositeScope, CompositeType};
use slipway_core::error::Refusal;
use slipway_core::secret::Secret;
use slipway_render::cloud_init::{NodeConfig, enrolment_document};
use slipway_render::daemon_set::{Bundle, TokenOutput};
use slipway_render::{definitions, pair};
use slipway_server::submitted_content;
use slipway_wire::catalog::{self, PublishVersion};
use slipway_wire::problem::FieldError;
use sqlx::{Connection as _, Row as _};

pub(crate) const RENDERERS: Renderers =
    Renderers { faults, daemon_set, cloud_init, role, config_maps, remove_config_maps, query };

/// Defaults of a rendered node agent; plexd has its own.
const HEARTBEAT_INTERVAL_MS: u64 = 30_000;
const ORPHAN_AFTER_MS: u64 = 600_000;

/// The faults for which a server would refuse this version of a blueprint of
/// engine crossplane.
fn faults(slug: &str, version: &PublishVersion) -> Vec<FieldError> {
    let slug = Name::parse("slug", slug).err().map(Refusal::from);
    let undeclared = version.parameter_schema.is_none();
    let (content, faults) = VersionContent::draft(submitted_content(version.clone()));
    let of_xrd = undeclared.then(|| pair::parameters_of_xrd(&content.xrd));
    let of_xrd = of_xrd.and_then(Result::err).map(|faults| pair::refusal(&faults));
    let documents = pair::check(&content).err().map(|faults| pair::refusal(&faults));
    let refusals = slug.into_iter().chain(faults).chain(documents).chain(of_xrd);
    let refusal = Refusal::all(refusals).err();
    let fault = |fault: &Refusal| FieldError {
        field: fault.field.clone().unwrap_or_default(),
        code: fault.kind.code().to_owned(),
        message: fault.message.clone(),
    };
    refusal.iter().flat_map(Refusal::faults).map(fault).collect()
}

/// The role that the control plane's account needs for composites of this type.
fn role(slug: &str, composite: &catalog::CompositeType) -> Result<String, String> {
    let (group, version) = composite.api_version.split_once('/').ok_or("it has no API group")?;
    let scope = CompositeScope::parse(&composite.scope).ok_or("its scope is not known")?;
    let kind = CompositeType {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: composite.kind.clone(),
        plural: composite.plural.clone(),
        scope,
    };
    definitions::role_yaml(slug, &kind).map_err(|error| error.to_string())
}

fn config_of(machine: &MachineConfig<'_>) -> NodeConfig {
    NodeConfig {
        authorities: machine.authorities.map(str::to_owned),
        api_url: machine.api_url.to_owned(),
        project_id: machine.project_id.to_owned(),
        resource_handle: machine.resource_handle.to_owned(),
        hostname: machine.hostname.to_owned(),
        heartbeat_interval_ms: HEARTBEAT_INTERVAL_MS,
        orphan_after_ms: ORPHAN_AFTER_MS,
        busy_seconds: 0,
    }
}

fn cloud_init(machine: &MachineConfig<'_>) -> Result<String, String> {
    let token = Secret::new(machine.token);
    let rendered = enrolment_document(&config_of(machine), &token);
    Ok(rendered.map_err(|error| error.to_string())?.expose().to_owned())
}

fn daemon_set(wanted: &DaemonSet<'_>) -> Result<String, String> {
    let config = config_of(&MachineConfig {
        authorities: None,
        api_url: wanted.api_url,
        project_id: wanted.project_id,
        resource_handle: wanted.resource_handle,
        hostname: wanted.hostname,
        token: wanted.token,
    });
    let bundle = Bundle {
        config: &config,
        token: &Secret::new(wanted.token),
        image: wanted.image,
        namespace: wanted.namespace,
        token_output: match wanted.by_environment {
            true => TokenOutput::Environment,
            false => TokenOutput::Secret,
        },
    };
    let rendered = bundle.render().map_err(|error| error.to_string())?;
    Ok(rendered.expose().to_owned())
}

/// The ConfigMaps of a namespace as the API server has them.
fn config_maps(
    kubeconfig: PathBuf,
    namespace: &'static str,
    labels: Option<String>,
) -> Pending<Vec<Value>> {
    Box::pin(async move {
        let connection = Connection::new(Access::Kubeconfig(kubeconfig), "of the demo");
        let resource = api_resource("v1", "ConfigMap", "configmaps");
        let (namespace, labels) = (Some(namespace), labels.as_deref());
        let listing = Listing { namespace, labels, ..Listing::all(&resource) };
        let found = connection.list(listing).await.map_err(|error| error.to_string())?;
        let found = found.into_iter().map(serde_json::to_value);
        found.collect::<Result<_, _>>().map_err(|error| error.to_string())
    })
}

/// Deletes ConfigMaps; one that somebody wrote since stays, and is an error.
fn remove_config_maps(kubeconfig: PathBuf, namespace: &'static str, labels: String) -> Pending<()> {
    Box::pin(async move {
        let connection = Connection::new(Access::Kubeconfig(kubeconfig), "of the demo");
        let resource = api_resource("v1", "ConfigMap", "configmaps");
        let listing = Listing {
            namespace: Some(namespace),
            labels: Some(&labels),
            ..Listing::all(&resource)
        };
        for found in connection.list(listing).await.map_err(|error| error.to_string())? {
            let object = ObjectRef {
                resource: resource.clone(),
                namespace: Some(namespace.to_owned()),
                name: found.metadata.name.clone().unwrap_or_default(),
            };
            let Some(version) = Version::of(&found.metadata) else { continue };
            let deleted = connection.delete_unchanged(&object, &version).await;
            deleted.map_err(|error| error.to_string())?;
        }
        Ok(())
    })
}

/// Runs one statement over a connection of its own.
fn query(url: String, sql: String) -> Pending<Vec<String>> {
    Box::pin(async move {
        let statement = sqlx::AssertSqlSafe(sql);
        let rows: Result<_, _> = if url.starts_with("sqlite:") {
            let mut connection = sqlx::SqliteConnection::connect(&url).await.map_err(shown)?;
            let rows = sqlx::query(statement).fetch_all(&mut connection).await.map_err(shown)?;
            connection.close().await.map_err(shown)?;
            rows.iter().map(|row| row.try_get(0)).collect()
        } else {
            let mut connection = sqlx::PgConnection::connect(&url).await.map_err(shown)?;
            let rows = sqlx::query(statement).fetch_all(&mut connection).await.map_err(shown)?;
            connection.close().await.map_err(shown)?;
            rows.iter().map(|row| row.try_get(0)).collect()
        };
        rows.map_err(shown)
    })
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` gives it")]
fn shown(error: sqlx::Error) -> String {
    slipway_tenants::redacted(&error.to_string())
}
