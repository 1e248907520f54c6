-- Whether XRD and Composition of a version are brought to the clusters of
-- projects: 0 or 1.
ALTER TABLE blueprint_versions ADD COLUMN install_definitions INTEGER NOT NULL DEFAULT 0;

-- How far a blueprint has come on a cluster, and which version was found there.
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
