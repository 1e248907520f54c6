-- The walking skeleton, PostgreSQL. Its sibling for SQLite has the same tables,
-- columns and indexes; a test compares them. Text is compared byte by byte
-- (COLLATE "C"), so that both databases sort and match alike.

CREATE TABLE installation (
    -- The only value of this key is 1: there is exactly one installation.
    singleton integer NOT NULL PRIMARY KEY DEFAULT 1 CHECK (singleton = 1),
    id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp()
);

-- A set that grows is a table, not a CHECK.
CREATE TABLE event_types (
    name text COLLATE "C" NOT NULL PRIMARY KEY
);

INSERT INTO event_types (name) VALUES
    ('broker.ProvisionedResourceRequested'),
    ('broker.ProvisionedResourceReady'),
    ('broker.ProvisionedResourceFailed'),
    ('broker.ProvisionedResourceDeleting'),
    ('broker.ProvisionedResourceDeleted');

CREATE TABLE projects (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    name text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX projects_name_key ON projects (name);

CREATE TABLE clouds (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    name text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    endpoint jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX clouds_name_key ON clouds (name);

-- Where a credential lies, never what it is.
CREATE TABLE cloud_credentials (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    cloud_id uuid NOT NULL REFERENCES clouds (id) ON DELETE RESTRICT,
    name text COLLATE "C" NOT NULL,
    kv_mount text COLLATE "C" NOT NULL,
    kv_path text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX cloud_credentials_cloud_id_name_key ON cloud_credentials (cloud_id, name);

CREATE TABLE credential_assignments (
    project_id uuid NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    cloud_credential_id uuid NOT NULL REFERENCES cloud_credentials (id) ON DELETE RESTRICT,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (project_id, cloud_credential_id)
);
CREATE INDEX credential_assignments_cloud_credential_id_index
    ON credential_assignments (cloud_credential_id);

CREATE TABLE clusters (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    name text COLLATE "C" NOT NULL,
    engine text COLLATE "C" NOT NULL,
    substrate_uid text COLLATE "C",
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
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT cluster_assignments_namespace_phase_check CHECK (namespace_phase IN (
        'Pending', 'Provisioning', 'Ready', 'Degraded', 'Terminating', 'Deleted'))
);
CREATE INDEX cluster_assignments_cluster_id_index ON cluster_assignments (cluster_id);

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

-- Published once and never updated: there is no statement that does.
CREATE TABLE blueprint_versions (
    id uuid NOT NULL PRIMARY KEY,
    blueprint_id uuid NOT NULL REFERENCES blueprints (id) ON DELETE RESTRICT,
    version text COLLATE "C" NOT NULL,
    xrd text COLLATE "C" NOT NULL,
    composition text COLLATE "C" NOT NULL,
    parameter_schema jsonb NOT NULL,
    injection_strategy text COLLATE "C" NOT NULL,
    mesh_role text COLLATE "C" NOT NULL,
    provider_kinds jsonb NOT NULL,
    published_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX blueprint_versions_blueprint_id_version_key
    ON blueprint_versions (blueprint_id, version);

CREATE TABLE resources (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    project_id uuid NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    handle text COLLATE "C" NOT NULL,
    labels jsonb NOT NULL,
    deletion_id uuid,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
-- A handle is free again once its resource is deleted.
CREATE UNIQUE INDEX resources_project_id_handle_key
    ON resources (project_id, handle) WHERE deleted_at IS NULL;
CREATE INDEX resources_project_id_id_index ON resources (project_id, id);

CREATE TABLE provisioned_resources (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    resource_id uuid NOT NULL REFERENCES resources (id) ON DELETE RESTRICT,
    project_id uuid NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    blueprint_version_id uuid NOT NULL REFERENCES blueprint_versions (id) ON DELETE RESTRICT,
    cloud_credential_id uuid NOT NULL REFERENCES cloud_credentials (id) ON DELETE RESTRICT,
    attempt integer NOT NULL,
    status text COLLATE "C" NOT NULL,
    phase_since timestamptz NOT NULL DEFAULT statement_timestamp(),
    failure_reason text COLLATE "C",
    xr_name text COLLATE "C" NOT NULL,
    bootstrap_token_id uuid,
    parameter_values jsonb NOT NULL,
    -- No default: null says "never asked for", which a default would hide.
    deletion_requested_at timestamptz,
    observed jsonb,
    failures integer NOT NULL DEFAULT 0,
    due_at timestamptz DEFAULT clock_timestamp(),
    wake bigint NOT NULL DEFAULT 0,
    claim_token bigint NOT NULL DEFAULT 0,
    claimed_wake bigint NOT NULL DEFAULT 0,
    claimed_by text COLLATE "C",
    lease_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT provisioned_resources_status_check CHECK (status IN (
        'Pending', 'Provisioning', 'Enrolling', 'Ready', 'Failed',
        'Deregistering', 'Deprovisioning', 'Deleted'))
);
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
    id uuid NOT NULL PRIMARY KEY,
    project_id uuid NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    provisioned_resource_id uuid NOT NULL REFERENCES provisioned_resources (id) ON DELETE RESTRICT,
    kind text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,
    issued_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    expires_at timestamptz NOT NULL,
    hard_expires_at timestamptz NOT NULL,
    consumed_at timestamptz,
    consumed_nonce text COLLATE "C",
    consumed_by_node_id uuid,
    consumed_public_key bytea,
    revoked_at timestamptz
);
CREATE UNIQUE INDEX bootstrap_tokens_hash_key ON bootstrap_tokens (hash);
CREATE INDEX bootstrap_tokens_provisioned_resource_id_index
    ON bootstrap_tokens (provisioned_resource_id);

CREATE TABLE nodes (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    project_id uuid NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    resource_id uuid NOT NULL REFERENCES resources (id) ON DELETE RESTRICT,
    provisioned_resource_id uuid NOT NULL REFERENCES provisioned_resources (id) ON DELETE RESTRICT,
    bootstrap_token_id uuid NOT NULL REFERENCES bootstrap_tokens (id) ON DELETE RESTRICT,
    hostname text COLLATE "C" NOT NULL,
    public_key bytea NOT NULL,
    -- Null once the key is revoked.
    key_hash bytea,
    capabilities jsonb NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    last_heartbeat_at timestamptz,
    drain_id uuid,
    drain_requested_at timestamptz,
    deregistered_at timestamptz,
    deregistered_how text COLLATE "C",
    deregistered_by text COLLATE "C",
    deregistered_reason text COLLATE "C",
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
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
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    kind text COLLATE "C" NOT NULL,
    target_id uuid NOT NULL,
    state text COLLATE "C" NOT NULL,
    requested_by text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    members jsonb NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    scheduled_for timestamptz,
    done_at timestamptz,
    restorable_until timestamptz,
    CONSTRAINT deletions_state_check CHECK (state IN (
        'scheduled', 'running', 'done', 'purging', 'purged', 'cancelled', 'restored'))
);
-- One thing is being deleted at most once at a time.
CREATE UNIQUE INDEX deletions_kind_target_id_key
    ON deletions (kind, target_id) WHERE state IN ('scheduled', 'running');
CREATE INDEX deletions_scheduled_for_index
    ON deletions (scheduled_for) WHERE state = 'scheduled';

CREATE TABLE blockers (
    subject_kind text COLLATE "C" NOT NULL,
    subject_id uuid NOT NULL,
    code text COLLATE "C" NOT NULL,
    since timestamptz NOT NULL DEFAULT statement_timestamp(),
    owner text COLLATE "C" NOT NULL,
    message text COLLATE "C" NOT NULL,
    evidence jsonb NOT NULL,
    next_retry_at timestamptz,
    PRIMARY KEY (subject_kind, subject_id, code)
);

CREATE TABLE outbox_events (
    -- The order of insertion. Events of one aggregate are inserted under its
    -- lock, so theirs is the order in which they were committed.
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL,
    aggregate_kind text COLLATE "C" NOT NULL,
    aggregate_id uuid NOT NULL,
    revision bigint NOT NULL,
    event_type text COLLATE "C" NOT NULL REFERENCES event_types (name) ON DELETE RESTRICT,
    project_id uuid NOT NULL,
    payload jsonb NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    position bigint
);
CREATE UNIQUE INDEX outbox_events_aggregate_id_revision_event_type_key
    ON outbox_events (aggregate_id, revision, event_type);
CREATE UNIQUE INDEX outbox_events_position_key ON outbox_events (position);
CREATE UNIQUE INDEX outbox_events_id_key ON outbox_events (id);
CREATE INDEX outbox_events_unpublished_index ON outbox_events (seq) WHERE position IS NULL;

CREATE TABLE outbox_head (
    singleton integer NOT NULL PRIMARY KEY DEFAULT 1 CHECK (singleton = 1),
    last_position bigint NOT NULL DEFAULT 0
);
INSERT INTO outbox_head (singleton, last_position) VALUES (1, 0);

CREATE TABLE audit_entries (
    id uuid NOT NULL PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT statement_timestamp(),
    actor text COLLATE "C" NOT NULL,
    verb text COLLATE "C" NOT NULL,
    subject_kind text COLLATE "C" NOT NULL,
    subject_id uuid NOT NULL,
    project_id uuid,
    reason text COLLATE "C",
    details jsonb NOT NULL,
    correlation_id text COLLATE "C"
);
CREATE INDEX audit_entries_subject_index ON audit_entries (subject_kind, subject_id, id);
CREATE INDEX audit_entries_project_id_index ON audit_entries (project_id, id);

CREATE TABLE phase_history (
    provisioned_resource_id uuid NOT NULL,
    seq bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT statement_timestamp(),
    from_phase text COLLATE "C",
    to_phase text COLLATE "C" NOT NULL,
    why text COLLATE "C" NOT NULL,
    PRIMARY KEY (provisioned_resource_id, seq)
);

CREATE TABLE leak_records (
    id uuid NOT NULL PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    subject_id uuid NOT NULL,
    found_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    evidence jsonb NOT NULL,
    resolved_at timestamptz
);
CREATE INDEX leak_records_subject_index ON leak_records (kind, subject_id);

CREATE TABLE api_keys (
    id uuid NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    short text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,
    role text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    expires_at timestamptz,
    revoked_at timestamptz
);
CREATE UNIQUE INDEX api_keys_name_key ON api_keys (name);
CREATE UNIQUE INDEX api_keys_short_key ON api_keys (short);
