//! The command line of the catalog: one noun each, the same verbs everywhere.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{PageArguments, parse_pair, parse_parameter};

#[derive(Debug, Clone, Subcommand)]
pub enum ProjectCommand {
    /// Make a project
    Create(ProjectCreateArguments),
    /// List projects
    List(DeletedListArguments),
    /// Show one project
    Get(NamedArguments),
    /// Replace all labels of a project; resources in it inherit them
    Relabel(RelabelArguments),
    /// Give a project another mesh, while no node lives in the one it has
    Mesh(ProjectMeshArguments),
    /// Delete a project that nothing lives in
    Delete(NamedDeleteArguments),
}

#[derive(Debug, Clone, Subcommand)]
pub enum CloudCommand {
    /// Make a cloud: an account of a provider
    Create(CloudCreateArguments),
    /// List clouds
    List(DeletedListArguments),
    /// Show one cloud
    Get(NamedArguments),
    /// Replace how the provider is reached
    Update(CloudUpdateArguments),
    /// Delete a cloud that no credential refers to
    Delete(NamedDeleteArguments),
}

#[derive(Debug, Clone, Subcommand)]
pub enum CredentialCommand {
    /// Say where a credential lies; the secret itself stays in the vault
    Create(CredentialCreateArguments),
    /// List credentials
    List(CredentialListArguments),
    /// Show one credential
    Get(CredentialArguments),
    /// Say that a credential lies somewhere else now
    Update(CredentialUpdateArguments),
    /// Delete a credential that no project may use
    Delete(CredentialDeleteArguments),
    /// Let a project use a credential
    Assign(CredentialAssignArguments),
    /// No longer let a project use a credential
    Unassign(CredentialUnassignArguments),
}

#[derive(Debug, Clone, Subcommand)]
pub enum BlueprintCommand {
    /// Make a blueprint; versions are published to it
    Create(BlueprintCreateArguments),
    /// Publish a version from a folder with metadata.json, xrd.yaml and composition.yaml
    Publish(PublishArguments),
    /// Publish every blueprint of a catalog that is not there yet, for engine crossplane
    Import(ImportArguments),
    /// List blueprints
    List(PageArguments),
    /// Show one blueprint
    Get(NamedArguments),
    /// List the versions of a blueprint
    Versions(VersionsArguments),
    /// Take no new declarations from a version; what was made from it goes on
    Retire(RetireArguments),
    /// List the clusters that a blueprint is delivered to, and the version found there
    Deliveries(VersionsArguments),
    /// Print the role that the control plane needs for the composites, for kubectl apply
    Rbac(NamedArguments),
}

#[derive(Debug, Clone, Subcommand)]
pub enum LabelCommand {
    /// Say what a label means, and whether it becomes a tag in the cloud
    Define(LabelDefineArguments),
    /// List label definitions
    List(PageArguments),
    /// Show one definition
    Get(NamedArguments),
    /// Forget what a label means; labels that have the key stay
    Delete(LabelDeleteArguments),
}

#[derive(Debug, Clone, Subcommand)]
pub enum ClusterCommand {
    /// Register a cluster; it is ready once a control plane serves it
    Create(ClusterCreateArguments),
    /// List clusters
    List(PageArguments),
    /// Show one cluster
    Get(NamedArguments),
    /// Place a project on a cluster; fixed while the project owns resources
    Assign(ClusterAssignArguments),
    /// Take a project that owns nothing from its cluster
    Unassign(ClusterUnassignArguments),
    /// List which project lives where
    Assignments(PageArguments),
}

#[derive(Debug, Clone, Args)]
pub struct NamedArguments {
    /// Its name or id
    #[arg(value_name = "NAME")]
    pub reference: String,
}

#[derive(Debug, Clone, Args)]
pub struct NamedDeleteArguments {
    /// Its name or id
    #[arg(value_name = "NAME")]
    pub reference: String,
    /// Why; kept with the deletion
    #[arg(long)]
    pub reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct DeletedListArguments {
    /// Also deleted ones
    #[arg(long)]
    pub show_deleted: bool,
    #[command(flatten)]
    pub page: PageArguments,
}

#[derive(Debug, Clone, Args)]
pub struct ProjectCreateArguments {
    /// Lowercase letters, digits and hyphens
    pub name: String,
    /// A label, which resources in the project inherit
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub labels: Vec<(String, String)>,
    /// The network that its nodes get their addresses from, for instance
    /// 10.42.0.0/16 or fd00:42::/64; 100.64.0.0/10 if not given
    #[arg(long, value_name = "CIDR")]
    pub mesh_cidr: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct ProjectMeshArguments {
    /// Its name or id
    #[arg(value_name = "NAME")]
    pub reference: String,
    /// The network that its nodes get their addresses from
    #[arg(value_name = "CIDR")]
    pub mesh_cidr: String,
}

#[derive(Debug, Clone, Args)]
pub struct RelabelArguments {
    /// Its name or id
    #[arg(value_name = "NAME")]
    pub reference: String,
    /// A label; those that are not given are taken away
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub labels: Vec<(String, String)>,
}

#[derive(Debug, Clone, Args)]
pub struct CloudCreateArguments {
    /// Lowercase letters, digits and hyphens
    pub name: String,
    /// The provider, as blueprints name it
    #[arg(long)]
    pub provider: String,
    /// How the provider is reached, for instance region=eu-1; never a secret
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_parameter)]
    pub endpoint: Vec<(String, Value)>,
}

#[derive(Debug, Clone, Args)]
pub struct CloudUpdateArguments {
    /// Its name or id
    #[arg(value_name = "NAME")]
    pub reference: String,
    /// How the provider is reached; what is not given is taken away
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_parameter)]
    pub endpoint: Vec<(String, Value)>,
}

#[derive(Debug, Clone, Args)]
pub struct CredentialCreateArguments {
    /// Lowercase letters, digits and hyphens; unique within the cloud
    pub name: String,
    /// Cloud name or id
    #[arg(long)]
    pub cloud: String,
    /// Mount of the KV store
    #[arg(long)]
    pub kv_mount: Option<String>,
    /// Path in it; derived from the ids if not given
    #[arg(long)]
    pub kv_path: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct CredentialListArguments {
    /// Only of this cloud (name or id)
    #[arg(long)]
    pub cloud: Option<String>,
    /// Only those that this project may use (name or id)
    #[arg(long, conflicts_with_all = ["cloud", "show_deleted"])]
    pub project: Option<String>,
    #[command(flatten)]
    pub list: DeletedListArguments,
}

#[derive(Debug, Clone, Args)]
pub struct CredentialArguments {
    /// Name or id of the credential
    #[arg(value_name = "CREDENTIAL")]
    pub credential: String,
    /// The cloud of the name (name or id)
    #[arg(long)]
    pub cloud: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct CredentialUpdateArguments {
    #[command(flatten)]
    pub target: CredentialArguments,
    /// Mount of the KV store
    #[arg(long, required_unless_present = "kv_path")]
    pub kv_mount: Option<String>,
    /// Path in it
    #[arg(long)]
    pub kv_path: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct CredentialDeleteArguments {
    #[command(flatten)]
    pub target: CredentialArguments,
    /// Why; kept with the deletion
    #[arg(long)]
    pub reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct CredentialAssignArguments {
    #[command(flatten)]
    pub target: CredentialArguments,
    /// Project name or id
    #[arg(long)]
    pub project: String,
}

#[derive(Debug, Clone, Args)]
pub struct CredentialUnassignArguments {
    #[command(flatten)]
    pub target: CredentialArguments,
    /// Project name or id
    #[arg(long)]
    pub project: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct BlueprintCreateArguments {
    /// Lowercase letters, digits and hyphens
    pub slug: String,
    /// What people call it
    #[arg(long)]
    pub display_name: String,
    /// What it makes
    #[arg(long, default_value = "")]
    pub description: String,
    /// Who makes it: local, crossplane or hetzner
    #[arg(long)]
    pub engine: String,
}

#[derive(Debug, Clone, Args)]
pub struct PublishArguments {
    /// The folder, called as the blueprint's slug
    #[arg(short, long = "folder", value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Bring XRD and Composition to every cluster that a project lives on
    #[arg(long)]
    pub deliver: bool,
}

#[derive(Debug, Clone, Args)]
pub struct ImportArguments {
    /// A folder of blueprints, one that holds it as `catalog`, or the folder of one blueprint
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Bring XRDs and Compositions to every cluster that a project lives on
    #[arg(long)]
    pub deliver: bool,
}

#[derive(Debug, Clone, Args)]
pub struct VersionsArguments {
    /// Slug or id of the blueprint
    pub blueprint: String,
    #[command(flatten)]
    pub page: PageArguments,
}

#[derive(Debug, Clone, Args)]
pub struct RetireArguments {
    /// Slug or id of the blueprint
    pub blueprint: String,
    /// The version
    #[arg(value_name = "VERSION")]
    pub retired: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct LabelDefineArguments {
    /// The key: letters, digits and - _ . /
    // Not `key`: that is the global option of the API key.
    #[arg(value_name = "KEY")]
    pub label: String,
    /// What it means
    #[arg(long, default_value = "")]
    pub description: String,
    /// It becomes a tag in the cloud
    #[arg(long)]
    pub propagate: bool,
}

#[derive(Debug, Clone, Args)]
pub struct LabelDeleteArguments {
    /// The key
    #[arg(value_name = "KEY")]
    pub label: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct ClusterCreateArguments {
    /// Lowercase letters, digits and hyphens
    pub name: String,
    /// local, crossplane or hetzner
    #[arg(long)]
    pub engine: String,
    /// What the namespaces of projects begin with
    #[arg(long)]
    pub namespace_prefix: Option<String>,
    /// Where it is, for placing projects by region
    #[arg(long)]
    pub region: Option<String>,
    /// How it is reached: in-cluster, or kubeconfig/<name of a file in kubeconfig_dir>
    #[arg(long)]
    pub access: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct ClusterAssignArguments {
    /// Name or id of the cluster
    #[arg(required_unless_present = "region", conflicts_with = "region")]
    pub cluster: Option<String>,
    /// Any usable cluster of this region, the one with the fewest projects
    #[arg(long)]
    pub region: Option<String>,
    /// Project name or id
    #[arg(long)]
    pub project: String,
}

#[derive(Debug, Clone, Args)]
pub struct ClusterUnassignArguments {
    /// Project name or id
    #[arg(long)]
    pub project: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}
