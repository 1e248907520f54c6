-- The catalog: projects, clouds, credentials, blueprints, label definitions.
-- Text is compared byte by byte (COLLATE "C"), so that both databases sort and match
-- alike. The sibling for SQLite has the same tables, columns and indexes; a test
-- compares them.
--
-- The migrations 1 to 8 make the schema of the first version, one room each, in
-- the order of their foreign keys. Rows are deleted softly: `deleted_at` is set,
-- the row stays, and the partial unique index frees its name.

CREATE TABLE projects (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    name text COLLATE "C" NOT NULL,
    labels jsonb NOT NULL DEFAULT '{}',
    -- The network that nodes get their addresses from; null means the default.
    mesh_cidr text COLLATE "C",
    deletion_id uuid,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX projects_name_key ON projects (name) WHERE deleted_at IS NULL;

CREATE TABLE clouds (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    name text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    endpoint jsonb NOT NULL,
    deletion_id uuid,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX clouds_name_key ON clouds (name) WHERE deleted_at IS NULL;

-- Where the secret store keeps a credential, never its value.
CREATE TABLE cloud_credentials (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    cloud_id uuid NOT NULL REFERENCES clouds (id) ON DELETE RESTRICT,
    name text COLLATE "C" NOT NULL,
    kv_mount text COLLATE "C" NOT NULL,
    kv_path text COLLATE "C" NOT NULL,
    deletion_id uuid,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX cloud_credentials_cloud_id_name_key
    ON cloud_credentials (cloud_id, name) WHERE deleted_at IS NULL;
-- Also for the deleted ones, which the foreign key counts.
CREATE INDEX cloud_credentials_cloud_id_index ON cloud_credentials (cloud_id);

CREATE TABLE credential_assignments (
    project_id uuid NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    cloud_credential_id uuid NOT NULL REFERENCES cloud_credentials (id) ON DELETE RESTRICT,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (project_id, cloud_credential_id)
);
CREATE INDEX credential_assignments_cloud_credential_id_index
    ON credential_assignments (cloud_credential_id);

CREATE TABLE blueprints (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    slug text COLLATE "C" NOT NULL,
    display_name text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    engine text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX blueprints_slug_key ON blueprints (slug);

-- A version is published once. Afterwards a statement may retire it and changes
-- nothing else.
CREATE TABLE blueprint_versions (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    blueprint_id uuid NOT NULL REFERENCES blueprints (id) ON DELETE RESTRICT,
    version text COLLATE "C" NOT NULL,
    xrd text COLLATE "C" NOT NULL,
    composition text COLLATE "C" NOT NULL,
    parameter_schema jsonb NOT NULL,
    injection_strategy text COLLATE "C" NOT NULL,
    mesh_role text COLLATE "C" NOT NULL,
    provider_kinds jsonb NOT NULL,
    -- The composite type that the XRD defines; null for engines without one.
    api_group text COLLATE "C",
    api_version text COLLATE "C",
    kind text COLLATE "C",
    plural text COLLATE "C",
    scope text COLLATE "C",
    -- 0 or 1: whether the composite type has a field for tags of the cloud.
    cloud_tags integer,
    -- 0 or 1: whether we bring XRD and Composition to the clusters of projects.
    install_definitions integer NOT NULL DEFAULT 0,
    retired_at timestamptz,
    published_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX blueprint_versions_blueprint_id_version_key
    ON blueprint_versions (blueprint_id, version);

CREATE TABLE label_definitions (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    key text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    -- 0 or 1.
    propagate integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX label_definitions_key_key ON label_definitions (key);
