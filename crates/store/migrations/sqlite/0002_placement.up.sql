-- Placement: management clusters, the namespace of each project on one of them,
-- and the definitions that a cluster has.

CREATE TABLE clusters (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    name TEXT NOT NULL,
    engine TEXT NOT NULL,
    region TEXT,
    -- How we reach the cluster: a reference, never a credential.
    access TEXT,
    namespace_prefix TEXT NOT NULL,
    -- The identity that the cluster reported; null before the first contact.
    substrate_uid TEXT,
    verified_at INTEGER,
    verification TEXT,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX clusters_name_key ON clusters (name);

CREATE TABLE cluster_assignments (
    project_id BLOB NOT NULL PRIMARY KEY REFERENCES projects (id) ON DELETE RESTRICT,
    revision INTEGER NOT NULL DEFAULT 1,
    cluster_id BLOB NOT NULL REFERENCES clusters (id) ON DELETE RESTRICT,
    namespace TEXT NOT NULL,
    namespace_phase TEXT NOT NULL,
    status TEXT,
    -- When somebody asked for the removal of the namespace.
    withdrawn_at INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    CONSTRAINT cluster_assignments_namespace_phase_check CHECK (namespace_phase IN (
        'Pending', 'Provisioning', 'Ready', 'Degraded', 'Terminating', 'Deleted'))
) STRICT;
CREATE INDEX cluster_assignments_cluster_id_index ON cluster_assignments (cluster_id);

-- The progress of a blueprint's definitions on a cluster, and the version found there.
CREATE TABLE blueprint_definitions (
    cluster_id BLOB NOT NULL REFERENCES clusters (id) ON DELETE RESTRICT,
    blueprint_id BLOB NOT NULL REFERENCES blueprints (id) ON DELETE RESTRICT,
    revision INTEGER NOT NULL DEFAULT 1,
    wanted_version TEXT NOT NULL,
    found_version TEXT,
    phase TEXT NOT NULL,
    problem TEXT,
    since INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    PRIMARY KEY (cluster_id, blueprint_id),
    CONSTRAINT blueprint_definitions_phase_check CHECK (phase IN (
        'Pending', 'Applying', 'Established', 'Degraded'))
) STRICT;
CREATE INDEX blueprint_definitions_blueprint_id_index ON blueprint_definitions (blueprint_id);
