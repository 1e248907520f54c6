//! What is written together with an edge.

use std::fmt;

use async_trait::async_trait;
use sqlx::Database;

use crate::Edge;

/// Writes into the transaction that writes the edges, such as an outbox and an audit log:
/// both are there, or neither is. An error rolls the transaction back; if there were edges
/// of several jobs, each job is then tried in a transaction of its own. An edge that is refused
/// for good parks its job, see [`Options::step_attempts`](crate::Options::step_attempts).
#[async_trait]
pub trait EdgeSink<Db: Database>: fmt::Debug + Send + Sync {
    async fn write(
        &self,
        connection: &mut Db::Connection,
        edges: &[Edge],
    ) -> Result<(), sqlx::Error>;
}
