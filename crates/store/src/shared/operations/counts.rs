//! The counts of the installation: three statements, each one scan of its table.

use slipway_app::operations::port::Counts;

use super::{Connection, blockers, broker, nodes};
use crate::failure::Failure;

pub(crate) async fn count(connection: &mut Connection, (): ()) -> Result<Counts, Failure> {
    Ok(Counts {
        phases: broker::attempts::count_by_phase(connection).await?,
        blockers: blockers::count_by_code(connection).await?,
        nodes: nodes::reads::count(connection).await?,
    })
}
