-- Placement: management clusters, the namespace of each project on one of them,
-- and the definitions that a cluster has.

CREATE TABLE clusters (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    name text COLLATE "C" NOT NULL,
    engine text COLLATE "C" NOT NULL,
    region text COLLATE "C",
    -- How we reach the cluster: a reference, never a credential.
    access text COLLATE "C",
    namespace_prefix text COLLATE "C" NOT NULL,
    -- The identity that the cluster reported; null before the first contact.
    substrate_uid text COLLATE "C",
    verified_at timestamptz,
    verification jsonb,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX clusters_name_key ON clusters (name);

CREATE TABLE cluster_assignments (
    project_id uuid NOT NULL PRIMARY KEY REFERENCES projects (id) ON DELETE RESTRICT,
    revision bigint NOT NULL DEFAULT 1,
    cluster_id uuid NOT NULL REFERENCES clusters (id) ON DELETE RESTRICT,
    namespace text COLLATE "C" NOT NULL,
    namespace_phase text COLLATE "C" NOT NULL,
    status jsonb,
    -- When somebody asked for the removal of the namespace.
    withdrawn_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT cluster_assignments_namespace_phase_check CHECK (namespace_phase IN (
        'Pending', 'Provisioning', 'Ready', 'Degraded', 'Terminating', 'Deleted'))
);
CREATE INDEX cluster_assignments_cluster_id_index ON cluster_assignments (cluster_id);

-- The progress of a blueprint's definitions on a cluster, and the version found there.
CREATE TABLE blueprint_definitions (
    cluster_id uuid NOT NULL REFERENCES clusters (id) ON DELETE RESTRICT,
    blueprint_id uuid NOT NULL REFERENCES blueprints (id) ON DELETE RESTRICT,
    revision bigint NOT NULL DEFAULT 1,
    wanted_version text COLLATE "C" NOT NULL,
    found_version text COLLATE "C",
    phase text COLLATE "C" NOT NULL,
    problem text COLLATE "C",
    since timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (cluster_id, blueprint_id),
    CONSTRAINT blueprint_definitions_phase_check CHECK (phase IN (
        'Pending', 'Applying', 'Established', 'Degraded'))
);
CREATE INDEX blueprint_definitions_blueprint_id_index ON blueprint_definitions (blueprint_id);
