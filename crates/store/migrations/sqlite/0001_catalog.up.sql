-- The catalog: projects, clouds, credentials, blueprints, label definitions.
-- Times are whole microseconds since the Unix epoch, ids are 16 bytes, JSON is text.
-- The sibling for PostgreSQL has the same tables, columns and indexes; a test
-- compares them.
--
-- The migrations 1 to 8 make the schema of the first version, one room each, in
-- the order of their foreign keys. Rows are deleted softly: `deleted_at` is set,
-- the row stays, and the partial unique index frees its name.

CREATE TABLE projects (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    name TEXT NOT NULL,
    labels TEXT NOT NULL DEFAULT '{}',
    -- The network that nodes get their addresses from; null means the default.
    mesh_cidr TEXT,
    deletion_id BLOB,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX projects_name_key ON projects (name) WHERE deleted_at IS NULL;

CREATE TABLE clouds (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    deletion_id BLOB,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX clouds_name_key ON clouds (name) WHERE deleted_at IS NULL;

-- Where the secret store keeps a credential, never its value.
CREATE TABLE cloud_credentials (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    cloud_id BLOB NOT NULL REFERENCES clouds (id) ON DELETE RESTRICT,
    name TEXT NOT NULL,
    kv_mount TEXT NOT NULL,
    kv_path TEXT NOT NULL,
    deletion_id BLOB,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX cloud_credentials_cloud_id_name_key
    ON cloud_credentials (cloud_id, name) WHERE deleted_at IS NULL;
-- Also for the deleted ones, which the foreign key counts.
CREATE INDEX cloud_credentials_cloud_id_index ON cloud_credentials (cloud_id);

CREATE TABLE credential_assignments (
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    cloud_credential_id BLOB NOT NULL REFERENCES cloud_credentials (id) ON DELETE RESTRICT,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    PRIMARY KEY (project_id, cloud_credential_id)
) STRICT;
CREATE INDEX credential_assignments_cloud_credential_id_index
    ON credential_assignments (cloud_credential_id);

CREATE TABLE blueprints (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    slug TEXT NOT NULL,
    display_name TEXT NOT NULL,
    description TEXT NOT NULL,
    engine TEXT NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX blueprints_slug_key ON blueprints (slug);

-- A version is published once. Afterwards a statement may retire it and changes
-- nothing else.
CREATE TABLE blueprint_versions (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    blueprint_id BLOB NOT NULL REFERENCES blueprints (id) ON DELETE RESTRICT,
    version TEXT NOT NULL,
    xrd TEXT NOT NULL,
    composition TEXT NOT NULL,
    parameter_schema TEXT NOT NULL,
    injection_strategy TEXT NOT NULL,
    mesh_role TEXT NOT NULL,
    provider_kinds TEXT NOT NULL,
    -- The composite type that the XRD defines; null for engines without one.
    api_group TEXT,
    api_version TEXT,
    kind TEXT,
    plural TEXT,
    scope TEXT,
    -- 0 or 1: whether the composite type has a field for tags of the cloud.
    cloud_tags INTEGER,
    -- 0 or 1: whether we bring XRD and Composition to the clusters of projects.
    install_definitions INTEGER NOT NULL DEFAULT 0,
    retired_at INTEGER,
    published_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX blueprint_versions_blueprint_id_version_key
    ON blueprint_versions (blueprint_id, version);

CREATE TABLE label_definitions (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    key TEXT NOT NULL,
    description TEXT NOT NULL,
    -- 0 or 1.
    propagate INTEGER NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX label_definitions_key_key ON label_definitions (key);
