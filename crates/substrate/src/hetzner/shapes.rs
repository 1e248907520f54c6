//! The provider's objects, as far as the engine reads or writes them. Fields that are not named
//! here are ignored: the API grows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(super) type Labels = BTreeMap<String, String>;

/// Something of which only the name matters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Named {
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Server {
    pub id: u64,
    pub name: String,
    pub status: String,
    /// RFC 3339.
    pub created: String,
    #[serde(default)]
    pub labels: Labels,
    pub protection: Protection,
    pub server_type: Named,
    /// Absent in answers of an API that is older than it.
    pub location: Option<Named>,
    #[serde(default)]
    pub locked: bool,
    #[serde(default)]
    pub public_net: PublicNet,
    pub placement_group: Option<Named>,
}

impl Server {
    pub(super) const RUNNING: &str = "running";
    pub(super) const DELETING: &str = "deleting";
    pub(super) const OFF: &str = "off";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Protection {
    pub delete: bool,
    /// The API takes only equal values.
    pub rebuild: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct PublicNet {
    pub ipv4: Option<Ip>,
    pub ipv6: Option<Ip>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Ip {
    pub ip: String,
}

/// What a server is made from. Its user data has a token, so it has no `Debug`.
#[derive(Clone, Serialize)]
pub(super) struct NewServer {
    pub name: String,
    pub server_type: String,
    pub location: String,
    pub image: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_group: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ssh_keys: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    pub labels: Labels,
}

/// The answer has a root password too, which is not read.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Created {
    pub server: Server,
    pub action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Action {
    pub id: u64,
    pub command: String,
    pub status: ActionStatus,
    pub error: Option<ActionError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ActionStatus {
    Running,
    Success,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ActionError {
    pub code: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct PlacementGroup {
    pub id: u64,
    pub name: String,
    #[serde(default)]
    pub labels: Labels,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct NewPlacementGroup {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub labels: Labels,
}

/// Labels are replaced as a whole.
#[derive(Debug, Clone, Serialize)]
pub(super) struct NewLabels {
    pub labels: Labels,
}

/// A page, and the number of the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<u64>,
    /// Of all pages; `None` if the API does not count them.
    pub total: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct Meta {
    #[serde(default)]
    pub pagination: Pagination,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct Pagination {
    pub next_page: Option<u64>,
    pub total_entries: Option<u64>,
}
