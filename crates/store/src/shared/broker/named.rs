//! What resources and attempts are called: by their handle.

use super::catalog::named::name_of_project;

macro_rules! broker_names {
    () => {
        concat!(
            names_of!("resources d", "d.handle"),
            " UNION ALL ",
            names_of!("provisioned_resources d", handle_of!("d.resource_id"))
        )
    };
}
pub(crate) use broker_names;

/// The handle of the resource with this id.
macro_rules! handle_of {
    ($id:literal) => {
        concat!("(SELECT r.handle FROM resources r WHERE r.id = ", $id, ")")
    };
}
pub(crate) use handle_of;

/// The handle of the resource of the attempt with this id.
macro_rules! handle_of_attempt {
    ($id:literal) => {
        concat!(
            "(SELECT r.handle FROM provisioned_resources a JOIN resources r \
             ON r.id = a.resource_id WHERE a.id = ",
            $id,
            ")"
        )
    };
}
pub(crate) use handle_of_attempt;

pub(crate) const RESOURCES: &str = called!(
    "resources",
    concat!("d.handle || ' of project ' || ", name_of_project!("d.project_id")),
    "SELECT id FROM resources WHERE handle = $1",
    "d.deleted_at IS NULL",
    "d.project_id = $4"
);

pub(crate) const ATTEMPTS: &str = by_id!("provisioned_resources", "d.project_id = $4");
