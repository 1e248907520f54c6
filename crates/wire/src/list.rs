//! What all lists of our API have in common: paging, and the rows that are left out.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Header of a list: ids of quarantined rows that were left out because they
/// break an invariant, separated by commas.
pub const QUARANTINED_ROWS: &str = "slipway-quarantined-rows";

/// Paging of every list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Page {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}
