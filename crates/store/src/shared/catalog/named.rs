//! What the things of the catalog are called.

macro_rules! catalog_names {
    () => {
        concat!(
            names_of!("projects d", "d.name"),
            " UNION ALL ",
            names_of!("clouds d", "d.name"),
            " UNION ALL ",
            names_of!("cloud_credentials d", "d.name"),
            " UNION ALL ",
            names_of!("blueprints d", "d.slug"),
            " UNION ALL ",
            names_of!(
                "blueprint_versions d JOIN blueprints b ON b.id = d.blueprint_id",
                "b.slug || '@' || d.version"
            ),
            " UNION ALL ",
            names_of!("label_definitions d", "d.key")
        )
    };
}
pub(crate) use catalog_names;

/// The name of the project with this id.
macro_rules! name_of_project {
    ($id:literal) => {
        concat!("(SELECT p.name FROM projects p WHERE p.id = ", $id, ")")
    };
}
pub(crate) use name_of_project;

pub(crate) const PROJECTS: &str = called!(
    "projects",
    "d.name",
    "SELECT id FROM projects WHERE name = $1",
    "d.deleted_at IS NULL",
    "d.id = $4"
);

pub(crate) const CLOUDS: &str = called!(
    "clouds",
    "d.name",
    "SELECT id FROM clouds WHERE name = $1",
    "d.deleted_at IS NULL",
    "1 = 1"
);

/// Of a project, those that it may use.
pub(crate) const CREDENTIALS: &str = called!(
    "cloud_credentials",
    "d.name || ' of cloud ' || (SELECT c.name FROM clouds c WHERE c.id = d.cloud_id)",
    "SELECT id FROM cloud_credentials WHERE name = $1",
    "d.deleted_at IS NULL",
    "EXISTS (SELECT 1 FROM credential_assignments g \
     WHERE g.cloud_credential_id = d.id AND g.project_id = $4)"
);

pub(crate) const BLUEPRINTS: &str = called!(
    "blueprints",
    "d.slug",
    "SELECT id FROM blueprints WHERE slug = $1",
    "d.deleted_at IS NULL",
    "1 = 1"
);

pub(crate) const LABELS: &str = called!(
    "label_definitions",
    "d.key",
    "SELECT id FROM label_definitions WHERE key = $1",
    "d.deleted_at IS NULL",
    "1 = 1"
);
