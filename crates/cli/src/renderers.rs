//! Rendering and checks on the client's side of the API. The binary provides
//! them, because this crate knows only the documents of the API.

use std::path::PathBuf;
use std::pin::Pin;

use serde_json::Value;
use slipway_wire::catalog::{CompositeType, PublishVersion};
use slipway_wire::problem::FieldError;

/// What a function answers later, or why it cannot.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;

/// Runs a statement on the database of a URL: the first column of its rows, which is text.
pub type Query = fn(String, String) -> Pending<Vec<String>>;

/// Functions of the renderer, and what demos check on a cluster and in
/// a database.
#[derive(Debug, Clone, Copy)]
pub struct Renderers {
    /// The faults of a version for engine crossplane, by slug and content; the
    /// same that the server reports.
    pub faults: fn(&str, &PublishVersion) -> Vec<FieldError>,
    /// The manifests of a DaemonSet as one YAML stream. Contains the token.
    pub daemon_set: fn(&DaemonSet<'_>) -> Result<String, String>,
    /// The cloud-init document of a machine. Contains the token.
    pub cloud_init: fn(&MachineConfig<'_>) -> Result<String, String>,
    /// The role that the control plane's account needs for the composites of a
    /// blueprint, by slug, as YAML.
    pub role: fn(&str, &CompositeType) -> Result<String, String>,
    /// The ConfigMaps of a namespace, by kubeconfig, namespace and labels, as the API server
    /// has them.
    pub config_maps: fn(PathBuf, &'static str, Option<String>) -> Pending<Vec<Value>>,
    /// Deletes those with these labels.
    pub remove_config_maps: fn(PathBuf, &'static str, String) -> Pending<()>,
    pub query: Query,
}

/// The input of a cloud-init document.
#[derive(Clone, Copy)]
pub struct MachineConfig<'a> {
    pub api_url: &'a str,
    pub project_id: &'a str,
    pub resource_handle: &'a str,
    pub hostname: &'a str,
    /// In PEM.
    pub authorities: Option<&'a str>,
    pub token: &'a str,
}

impl std::fmt::Debug for MachineConfig<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MachineConfig").field("hostname", &self.hostname).finish_non_exhaustive()
    }
}

/// The input of a DaemonSet.
#[derive(Clone, Copy)]
pub struct DaemonSet<'a> {
    pub api_url: &'a str,
    pub project_id: &'a str,
    pub resource_handle: &'a str,
    /// The machine that the pod is bound to: a token enrols one node.
    pub hostname: &'a str,
    pub namespace: &'a str,
    pub image: &'a str,
    /// Passes the token in a variable instead of a Secret.
    pub by_environment: bool,
    pub token: &'a str,
}

impl std::fmt::Debug for DaemonSet<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DaemonSet").field("hostname", &self.hostname).finish_non_exhaustive()
    }
}
