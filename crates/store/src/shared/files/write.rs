//! Dispatches each write of the files domain.

use slipway_core::files::FilesWrite;

use super::{Connection, declared};
use crate::failure::Failure;

pub(crate) async fn apply(
    connection: &mut Connection,
    writes: &[&FilesWrite],
) -> Result<(), Failure> {
    let rows: Vec<_> = writes
        .iter()
        .map(|write| match write {
            FilesWrite::Put(row) => &**row,
        })
        .collect();
    declared::put(connection, &rows).await
}
