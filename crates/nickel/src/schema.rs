//! Schemas that the program brings along, so that a workspace needs no copy of them.
//!
//! They are imported by their path in our repository, from any folder of a workspace.
//! With the program `nickel`, and in editors, the same import works with `--import-path`
//! or `NICKEL_IMPORT_PATH` naming a checkout. As there, a file of that path beside the
//! importing one goes first.

use std::path::Path;

const SCALING: &str = "schemas/infrastructure/compute/scaling.ncl";

/// The schema for an import of `path`.
pub(crate) fn text(path: &Path) -> Option<&'static str> {
    (path == Path::new(SCALING))
        .then_some(include_str!("../../../schemas/infrastructure/compute/scaling.ncl"))
}
