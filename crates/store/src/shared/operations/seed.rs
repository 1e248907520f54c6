//! Writes the seed, through the rooms that own its tables.

use slipway_app::seed::Seed;
use slipway_core::ids::ClusterId;
use slipway_durable::database::End;

use super::{Connection, catalog, placement};
use crate::failure::Failure;

/// Answers the cluster of the seed.
pub(crate) async fn seed(
    connection: &mut Connection,
    seed: &Seed,
) -> Result<End<ClusterId>, Failure> {
    let project = catalog::seed::seed(connection, seed).await?;
    Ok(End::Commit(placement::seed::seed(connection, seed, project).await?))
}
