-- Whether XRD and Composition of a version are brought to the clusters of
-- projects: 0 or 1.
ALTER TABLE blueprint_versions ADD COLUMN install_definitions integer NOT NULL DEFAULT 0;

-- How far a blueprint has come on a cluster, and which version was found there.
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
