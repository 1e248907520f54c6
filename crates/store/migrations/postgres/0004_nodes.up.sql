-- Nodes: bootstrap tokens and the nodes that enrolled with them.

-- The hash of a token, never the token.
CREATE TABLE bootstrap_tokens (
    id uuid NOT NULL PRIMARY KEY,
    project_id uuid NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    provisioned_resource_id uuid NOT NULL REFERENCES provisioned_resources (id) ON DELETE RESTRICT,
    kind text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,
    -- Who issued the token by hand; null if a loop did.
    issued_by text COLLATE "C",
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
-- Each enrolment looks its nonce up. The rule of core refuses a second use, under
-- the lock of the project; the index only makes the lookup cheap.
CREATE INDEX bootstrap_tokens_project_id_consumed_nonce_index
    ON bootstrap_tokens (project_id, consumed_nonce) WHERE consumed_nonce IS NOT NULL;

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
    -- The number of the node's address in the mesh of its project, and the address.
    -- One row of a project has a number at most: its live holder, or the last node
    -- that left with it and freed it.
    mesh_host bigint,
    mesh_ip text COLLATE "C",
    -- What the agent reports about itself.
    binary_version text COLLATE "C",
    binary_checksum text COLLATE "C",
    agent_status text COLLATE "C",
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
CREATE UNIQUE INDEX nodes_project_id_mesh_host_key
    ON nodes (project_id, mesh_host) WHERE mesh_host IS NOT NULL;
-- The lowest free number of a project is its first row here.
CREATE INDEX nodes_mesh_left_index
    ON nodes (project_id, mesh_host) WHERE mesh_host IS NOT NULL AND deregistered_at IS NOT NULL;
-- The rule of core allows a public key one registered node in a project; it looks
-- the key up here, under the lock of the project.
CREATE INDEX nodes_project_id_public_key_index ON nodes (project_id, public_key)
    WHERE deregistered_at IS NULL;
