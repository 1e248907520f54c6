-- The walking skeleton, SQLite. Its sibling for PostgreSQL has the same tables,
-- columns and indexes; a test compares them. Times are whole microseconds since
-- the Unix epoch, ids are 16 bytes, JSON is text.

CREATE TABLE installation (
    -- The only value of this key is 1: there is exactly one installation.
    singleton INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (singleton = 1),
    id BLOB NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;

-- A set that grows is a table, not a CHECK.
CREATE TABLE event_types (
    name TEXT NOT NULL PRIMARY KEY
) STRICT;

INSERT INTO event_types (name) VALUES
    ('broker.ProvisionedResourceRequested'),
    ('broker.ProvisionedResourceReady'),
    ('broker.ProvisionedResourceFailed'),
    ('broker.ProvisionedResourceDeleting'),
    ('broker.ProvisionedResourceDeleted');

CREATE TABLE projects (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX projects_name_key ON projects (name);

CREATE TABLE clouds (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX clouds_name_key ON clouds (name);

-- Where a credential lies, never what it is.
CREATE TABLE cloud_credentials (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    cloud_id BLOB NOT NULL REFERENCES clouds (id) ON DELETE RESTRICT,
    name TEXT NOT NULL,
    kv_mount TEXT NOT NULL,
    kv_path TEXT NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX cloud_credentials_cloud_id_name_key ON cloud_credentials (cloud_id, name);

CREATE TABLE credential_assignments (
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    cloud_credential_id BLOB NOT NULL REFERENCES cloud_credentials (id) ON DELETE RESTRICT,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    PRIMARY KEY (project_id, cloud_credential_id)
) STRICT;
CREATE INDEX credential_assignments_cloud_credential_id_index
    ON credential_assignments (cloud_credential_id);

CREATE TABLE clusters (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    name TEXT NOT NULL,
    engine TEXT NOT NULL,
    substrate_uid TEXT,
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
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    CONSTRAINT cluster_assignments_namespace_phase_check CHECK (namespace_phase IN (
        'Pending', 'Provisioning', 'Ready', 'Degraded', 'Terminating', 'Deleted'))
) STRICT;
CREATE INDEX cluster_assignments_cluster_id_index ON cluster_assignments (cluster_id);

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

-- Published once and never updated: there is no statement that does.
CREATE TABLE blueprint_versions (
    id BLOB NOT NULL PRIMARY KEY,
    blueprint_id BLOB NOT NULL REFERENCES blueprints (id) ON DELETE RESTRICT,
    version TEXT NOT NULL,
    xrd TEXT NOT NULL,
    composition TEXT NOT NULL,
    parameter_schema TEXT NOT NULL,
    injection_strategy TEXT NOT NULL,
    mesh_role TEXT NOT NULL,
    provider_kinds TEXT NOT NULL,
    published_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX blueprint_versions_blueprint_id_version_key
    ON blueprint_versions (blueprint_id, version);

CREATE TABLE resources (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    handle TEXT NOT NULL,
    labels TEXT NOT NULL,
    deletion_id BLOB,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
-- A handle is free again once its resource is deleted.
CREATE UNIQUE INDEX resources_project_id_handle_key
    ON resources (project_id, handle) WHERE deleted_at IS NULL;
CREATE INDEX resources_project_id_id_index ON resources (project_id, id);

CREATE TABLE provisioned_resources (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    resource_id BLOB NOT NULL REFERENCES resources (id) ON DELETE RESTRICT,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    blueprint_version_id BLOB NOT NULL REFERENCES blueprint_versions (id) ON DELETE RESTRICT,
    cloud_credential_id BLOB NOT NULL REFERENCES cloud_credentials (id) ON DELETE RESTRICT,
    attempt INTEGER NOT NULL,
    status TEXT NOT NULL,
    phase_since INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    failure_reason TEXT,
    xr_name TEXT NOT NULL,
    bootstrap_token_id BLOB,
    parameter_values TEXT NOT NULL,
    -- No default: null says "never asked for", which a default would hide.
    deletion_requested_at INTEGER,
    observed TEXT,
    failures INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    wake INTEGER NOT NULL DEFAULT 0,
    claim_token INTEGER NOT NULL DEFAULT 0,
    claimed_wake INTEGER NOT NULL DEFAULT 0,
    claimed_by TEXT,
    lease_until INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    CONSTRAINT provisioned_resources_status_check CHECK (status IN (
        'Pending', 'Provisioning', 'Enrolling', 'Ready', 'Failed',
        'Deregistering', 'Deprovisioning', 'Deleted'))
) STRICT;
CREATE UNIQUE INDEX provisioned_resources_resource_id_attempt_key
    ON provisioned_resources (resource_id, attempt);
CREATE INDEX provisioned_resources_due_at_index
    ON provisioned_resources (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX provisioned_resources_project_id_index ON provisioned_resources (project_id);
CREATE INDEX provisioned_resources_blueprint_version_id_index
    ON provisioned_resources (blueprint_version_id);
CREATE INDEX provisioned_resources_cloud_credential_id_index
    ON provisioned_resources (cloud_credential_id);

-- The hash of a token, never the token.
CREATE TABLE bootstrap_tokens (
    id BLOB NOT NULL PRIMARY KEY,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    provisioned_resource_id BLOB NOT NULL REFERENCES provisioned_resources (id) ON DELETE RESTRICT,
    kind TEXT NOT NULL,
    hash BLOB NOT NULL,
    issued_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    expires_at INTEGER NOT NULL,
    hard_expires_at INTEGER NOT NULL,
    consumed_at INTEGER,
    consumed_nonce TEXT,
    consumed_by_node_id BLOB,
    consumed_public_key BLOB,
    revoked_at INTEGER
) STRICT;
CREATE UNIQUE INDEX bootstrap_tokens_hash_key ON bootstrap_tokens (hash);
CREATE INDEX bootstrap_tokens_provisioned_resource_id_index
    ON bootstrap_tokens (provisioned_resource_id);

CREATE TABLE nodes (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    resource_id BLOB NOT NULL REFERENCES resources (id) ON DELETE RESTRICT,
    provisioned_resource_id BLOB NOT NULL REFERENCES provisioned_resources (id) ON DELETE RESTRICT,
    bootstrap_token_id BLOB NOT NULL REFERENCES bootstrap_tokens (id) ON DELETE RESTRICT,
    hostname TEXT NOT NULL,
    public_key BLOB NOT NULL,
    -- Null once the key is revoked.
    key_hash BLOB,
    capabilities TEXT NOT NULL,
    registered_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    last_heartbeat_at INTEGER,
    drain_id BLOB,
    drain_requested_at INTEGER,
    deregistered_at INTEGER,
    deregistered_how TEXT,
    deregistered_by TEXT,
    deregistered_reason TEXT,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX nodes_bootstrap_token_id_key ON nodes (bootstrap_token_id);
CREATE INDEX nodes_provisioned_resource_id_index ON nodes (provisioned_resource_id);
-- An attempt has at most one registered node.
CREATE UNIQUE INDEX nodes_registered_key
    ON nodes (provisioned_resource_id) WHERE deregistered_at IS NULL;
CREATE INDEX nodes_project_id_id_index ON nodes (project_id, id);
CREATE INDEX nodes_resource_id_index ON nodes (resource_id);

-- Deletions, blockers, events, audit and leak records name what they are about
-- by kind and id, without foreign keys: they outlive it.
CREATE TABLE deletions (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    kind TEXT NOT NULL,
    target_id BLOB NOT NULL,
    state TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    members TEXT NOT NULL,
    requested_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    scheduled_for INTEGER,
    done_at INTEGER,
    restorable_until INTEGER,
    CONSTRAINT deletions_state_check CHECK (state IN (
        'scheduled', 'running', 'done', 'purging', 'purged', 'cancelled', 'restored'))
) STRICT;
-- One thing is being deleted at most once at a time.
CREATE UNIQUE INDEX deletions_kind_target_id_key
    ON deletions (kind, target_id) WHERE state IN ('scheduled', 'running');
CREATE INDEX deletions_scheduled_for_index
    ON deletions (scheduled_for) WHERE state = 'scheduled';

CREATE TABLE blockers (
    subject_kind TEXT NOT NULL,
    subject_id BLOB NOT NULL,
    code TEXT NOT NULL,
    since INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    owner TEXT NOT NULL,
    message TEXT NOT NULL,
    evidence TEXT NOT NULL,
    next_retry_at INTEGER,
    PRIMARY KEY (subject_kind, subject_id, code)
) STRICT;

CREATE TABLE outbox_events (
    -- The order of insertion. Events of one aggregate are inserted under its
    -- lock, so theirs is the order in which they were committed.
    seq INTEGER NOT NULL PRIMARY KEY,
    id BLOB NOT NULL,
    aggregate_kind TEXT NOT NULL,
    aggregate_id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    event_type TEXT NOT NULL REFERENCES event_types (name) ON DELETE RESTRICT,
    project_id BLOB NOT NULL,
    payload TEXT NOT NULL,
    occurred_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    position INTEGER
) STRICT;
CREATE UNIQUE INDEX outbox_events_aggregate_id_revision_event_type_key
    ON outbox_events (aggregate_id, revision, event_type);
CREATE UNIQUE INDEX outbox_events_position_key ON outbox_events (position);
CREATE UNIQUE INDEX outbox_events_id_key ON outbox_events (id);
CREATE INDEX outbox_events_unpublished_index ON outbox_events (seq) WHERE position IS NULL;

CREATE TABLE outbox_head (
    singleton INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (singleton = 1),
    last_position INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO outbox_head (singleton, last_position) VALUES (1, 0);

CREATE TABLE audit_entries (
    id BLOB NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    actor TEXT NOT NULL,
    verb TEXT NOT NULL,
    subject_kind TEXT NOT NULL,
    subject_id BLOB NOT NULL,
    project_id BLOB,
    reason TEXT,
    details TEXT NOT NULL,
    correlation_id TEXT
) STRICT;
CREATE INDEX audit_entries_subject_index ON audit_entries (subject_kind, subject_id, id);
CREATE INDEX audit_entries_project_id_index ON audit_entries (project_id, id);

CREATE TABLE phase_history (
    provisioned_resource_id BLOB NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    from_phase TEXT,
    to_phase TEXT NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (provisioned_resource_id, seq)
) STRICT;

CREATE TABLE leak_records (
    id BLOB NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    subject_id BLOB NOT NULL,
    found_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    evidence TEXT NOT NULL,
    resolved_at INTEGER
) STRICT;
CREATE INDEX leak_records_subject_index ON leak_records (kind, subject_id);

CREATE TABLE api_keys (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    short TEXT NOT NULL,
    hash BLOB NOT NULL,
    role TEXT NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE UNIQUE INDEX api_keys_name_key ON api_keys (name);
CREATE UNIQUE INDEX api_keys_short_key ON api_keys (short);
