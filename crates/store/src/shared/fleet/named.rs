//! What the things of Fleet are called.

use super::catalog::named::name_of_project;

macro_rules! fleet_names {
    () => {
        concat!(
            names_of!("generators d", "d.name"),
            " UNION ALL ",
            names_of!("stacks d", "d.name"),
            " UNION ALL ",
            names_of!("fleet_templates d", "d.name"),
            " UNION ALL ",
            names_of!("fleet_agents d", "d.name")
        )
    };
}
pub(crate) use fleet_names;

macro_rules! named {
    ($table:literal) => {
        called!(
            $table,
            concat!("d.name || ' of project ' || ", name_of_project!("d.project_id")),
            concat!("SELECT id FROM ", $table, " WHERE name = $1"),
            "d.deleted_at IS NULL",
            "d.project_id = $4"
        )
    };
}

pub(crate) const GENERATORS: &str = named!("generators");
pub(crate) const STACKS: &str = named!("stacks");
pub(crate) const TEMPLATES: &str = named!("fleet_templates");
pub(crate) const AGENTS: &str = named!("fleet_agents");
