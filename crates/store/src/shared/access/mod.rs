//! API keys, idempotency keys, the audit, and the reach of a caller.

#[macro_use]
pub(crate) mod scope;

pub(crate) mod api_keys;
pub(crate) mod audit;
pub(crate) mod idempotency;
pub(crate) mod names;
pub(crate) mod port;
pub(crate) mod prune;
pub(crate) mod withdrawn_keys;
pub(crate) mod write;

use super::{
    Backend, Connection, Db, Row, broker, catalog, deletion, events, fleet, json_values, nodes,
    operations, page, placement, rollouts, row_set, rows, table, tenants, topology, writes,
};
