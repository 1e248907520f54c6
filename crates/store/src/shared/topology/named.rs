//! What workspaces are called.

use super::catalog::named::name_of_project;

macro_rules! workspace_names {
    () => {
        names_of!("workspaces d", "d.name")
    };
}
pub(crate) use workspace_names;

pub(crate) const WORKSPACES: &str = called!(
    "workspaces",
    concat!("d.name || ' of project ' || ", name_of_project!("d.project_id")),
    "SELECT id FROM workspaces WHERE name = $1",
    "d.deleted_at IS NULL",
    "d.project_id = $4"
);
