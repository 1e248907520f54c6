-- Fleet: generators submit stacks of deployment objects, and agents bring them to clusters.
-- What has a name is deleted softly and carries the id of its deletion. The other rows are
-- leaves: no deletion touches them, and they count as deleted with what they hang on.

CREATE TABLE generators (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    name TEXT NOT NULL,
    description TEXT,
    -- 0 or 1: whether its objects may have Secrets with values.
    accepts_secrets INTEGER NOT NULL DEFAULT 0,
    deletion_id BLOB,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX generators_project_id_name_key
    ON generators (project_id, name) WHERE deleted_at IS NULL;
CREATE INDEX generators_project_id_index ON generators (project_id);
CREATE INDEX generators_name_index ON generators (name);

CREATE TABLE stacks (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    generator_id BLOB NOT NULL REFERENCES generators (id) ON DELETE RESTRICT,
    name TEXT NOT NULL,
    description TEXT,
    -- The number of its newest object; 0 before the first.
    last_sequence INTEGER NOT NULL DEFAULT 0,
    deletion_id BLOB,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX stacks_project_id_name_key
    ON stacks (project_id, name) WHERE deleted_at IS NULL;
CREATE INDEX stacks_project_id_index ON stacks (project_id);
CREATE INDEX stacks_generator_id_index ON stacks (generator_id);
CREATE INDEX stacks_name_index ON stacks (name);
CREATE INDEX stacks_deletion_id_index ON stacks (deletion_id) WHERE deletion_id IS NOT NULL;

CREATE TABLE fleet_templates (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    -- Null for a template of the whole project.
    generator_id BLOB REFERENCES generators (id) ON DELETE RESTRICT,
    name TEXT NOT NULL,
    description TEXT,
    version INTEGER NOT NULL,
    template_content TEXT NOT NULL,
    parameters_schema TEXT NOT NULL,
    deletion_id BLOB,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
-- No generator counts as a value, so that each case has an index.
CREATE UNIQUE INDEX fleet_templates_generator_id_name_version_key
    ON fleet_templates (generator_id, name, version)
    WHERE deleted_at IS NULL AND generator_id IS NOT NULL;
CREATE UNIQUE INDEX fleet_templates_project_id_name_version_key
    ON fleet_templates (project_id, name, version)
    WHERE deleted_at IS NULL AND generator_id IS NULL;
CREATE INDEX fleet_templates_project_id_index ON fleet_templates (project_id);
CREATE INDEX fleet_templates_generator_id_index ON fleet_templates (generator_id);
CREATE INDEX fleet_templates_name_index ON fleet_templates (name);
CREATE INDEX fleet_templates_deletion_id_index
    ON fleet_templates (deletion_id) WHERE deletion_id IS NOT NULL;

CREATE TABLE fleet_agents (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    name TEXT NOT NULL,
    cluster_name TEXT NOT NULL,
    status TEXT NOT NULL,
    last_heartbeat INTEGER,
    -- 0 or 1: what it said last about the API server of its cluster.
    k8s_reachable INTEGER,
    k8s_api_latency_ms INTEGER,
    k8s_reported_at INTEGER,
    deletion_id BLOB,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    CONSTRAINT fleet_agents_status_check CHECK (status IN ('INACTIVE', 'ACTIVE'))
) STRICT;
CREATE UNIQUE INDEX fleet_agents_project_id_name_cluster_name_key
    ON fleet_agents (project_id, name, cluster_name) WHERE deleted_at IS NULL;
CREATE INDEX fleet_agents_project_id_index ON fleet_agents (project_id);
CREATE INDEX fleet_agents_name_index ON fleet_agents (name);

-- Content never changes. A marker is empty: it removes what its stack has deployed.
CREATE TABLE deployment_objects (
    id BLOB NOT NULL PRIMARY KEY,
    stack_id BLOB NOT NULL REFERENCES stacks (id) ON DELETE RESTRICT,
    -- The only agent that a marker is for.
    agent_id BLOB REFERENCES fleet_agents (id) ON DELETE RESTRICT,
    sequence_id INTEGER NOT NULL,
    yaml_content TEXT NOT NULL,
    yaml_checksum TEXT NOT NULL,
    is_deletion_marker INTEGER NOT NULL,
    submitted_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    withdrawn_at INTEGER,
    CONSTRAINT deployment_objects_marker_check CHECK (
        is_deletion_marker IN (0, 1) AND (is_deletion_marker = 1) = (yaml_content = ''))
) STRICT;
CREATE UNIQUE INDEX deployment_objects_stack_id_sequence_id_key
    ON deployment_objects (stack_id, sequence_id) WHERE agent_id IS NULL;
CREATE INDEX deployment_objects_stack_id_index ON deployment_objects (stack_id);
CREATE INDEX deployment_objects_agent_id_index
    ON deployment_objects (agent_id) WHERE agent_id IS NOT NULL;

-- Of agents, stacks and templates.
CREATE TABLE fleet_labels (
    id BLOB NOT NULL PRIMARY KEY,
    owner_kind TEXT NOT NULL,
    owner_id BLOB NOT NULL,
    label TEXT NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX fleet_labels_owner_id_label_key ON fleet_labels (owner_id, label);
CREATE INDEX fleet_labels_label_index ON fleet_labels (label, owner_kind, owner_id);

CREATE TABLE fleet_annotations (
    id BLOB NOT NULL PRIMARY KEY,
    owner_kind TEXT NOT NULL,
    owner_id BLOB NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX fleet_annotations_owner_id_key_key ON fleet_annotations (owner_id, key);
CREATE INDEX fleet_annotations_key_value_index
    ON fleet_annotations (key, value, owner_kind, owner_id);

-- An agent agrees to stacks of a generator.
CREATE TABLE fleet_registrations (
    id BLOB NOT NULL PRIMARY KEY,
    agent_id BLOB NOT NULL REFERENCES fleet_agents (id) ON DELETE RESTRICT,
    generator_id BLOB NOT NULL REFERENCES generators (id) ON DELETE RESTRICT,
    registered_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX fleet_registrations_agent_id_generator_id_key
    ON fleet_registrations (agent_id, generator_id);
CREATE INDEX fleet_registrations_generator_id_index ON fleet_registrations (generator_id);

CREATE TABLE fleet_targets (
    id BLOB NOT NULL PRIMARY KEY,
    agent_id BLOB NOT NULL REFERENCES fleet_agents (id) ON DELETE RESTRICT,
    stack_id BLOB NOT NULL REFERENCES stacks (id) ON DELETE RESTRICT
) STRICT;
CREATE UNIQUE INDEX fleet_targets_agent_id_stack_id_key ON fleet_targets (agent_id, stack_id);
CREATE INDEX fleet_targets_stack_id_index ON fleet_targets (stack_id);

-- An agent was offered a stack, and which object last; until it reports that it carried out
-- a marker, it may have deployed it.
CREATE TABLE holdings (
    agent_id BLOB NOT NULL REFERENCES fleet_agents (id) ON DELETE RESTRICT,
    stack_id BLOB NOT NULL REFERENCES stacks (id) ON DELETE RESTRICT,
    object_id BLOB NOT NULL REFERENCES deployment_objects (id) ON DELETE RESTRICT,
    offered_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    released_at INTEGER,
    PRIMARY KEY (agent_id, stack_id)
) STRICT;
CREATE INDEX holdings_stack_id_index ON holdings (stack_id);
CREATE INDEX holdings_object_id_index ON holdings (object_id);

-- Equal reports are one row.
CREATE TABLE agent_reports (
    id BLOB NOT NULL PRIMARY KEY,
    agent_id BLOB NOT NULL REFERENCES fleet_agents (id) ON DELETE RESTRICT,
    object_id BLOB NOT NULL REFERENCES deployment_objects (id) ON DELETE RESTRICT,
    event_type TEXT NOT NULL,
    status TEXT NOT NULL,
    message TEXT,
    first_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    last_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    count INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE UNIQUE INDEX agent_reports_key
    ON agent_reports (agent_id, object_id, event_type, status);
CREATE INDEX agent_reports_object_id_index ON agent_reports (object_id);

CREATE TABLE object_health (
    id BLOB NOT NULL PRIMARY KEY,
    agent_id BLOB NOT NULL REFERENCES fleet_agents (id) ON DELETE RESTRICT,
    object_id BLOB NOT NULL REFERENCES deployment_objects (id) ON DELETE RESTRICT,
    status TEXT NOT NULL,
    summary TEXT,
    checked_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX object_health_agent_id_object_id_key ON object_health (agent_id, object_id);
CREATE INDEX object_health_object_id_index ON object_health (object_id);

-- The agent or generator that a key belongs to. Its role is `agent` or `generator`, which code
-- that does not know them reads as no role.
ALTER TABLE api_keys ADD COLUMN agent_id BLOB;
ALTER TABLE api_keys ADD COLUMN generator_id BLOB;
CREATE INDEX api_keys_agent_id_index ON api_keys (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX api_keys_generator_id_index
    ON api_keys (generator_id) WHERE generator_id IS NOT NULL;
