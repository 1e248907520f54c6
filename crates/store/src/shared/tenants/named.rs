//! What tenants and their profiles are called.

use super::catalog::named::name_of_project;

macro_rules! tenant_names {
    () => {
        concat!(
            names_of!("tenants d", "d.name"),
            " UNION ALL ",
            names_of!("tenant_profiles d", "d.name")
        )
    };
}
pub(crate) use tenant_names;

pub(crate) const TENANTS: &str = called!(
    "tenants",
    concat!("d.name || ' of project ' || ", name_of_project!("d.project_id")),
    "SELECT id FROM tenants WHERE name = $1",
    "d.deleted_at IS NULL",
    "d.project_id = $4"
);

pub(crate) const PROFILES: &str = called!(
    "tenant_profiles",
    "d.name",
    "SELECT id FROM tenant_profiles WHERE name = $1",
    "d.deleted_at IS NULL",
    "1 = 1"
);
