-- Nodes: bootstrap tokens, the nodes that enrolled with them, and their addresses.

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
-- The rule of core refuses a second use of a nonce; the index refuses the second of
-- two enrolments at once.
CREATE UNIQUE INDEX bootstrap_tokens_project_id_consumed_nonce_key
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
    -- They stay when the node has left; mesh_addresses says who has the number.
    mesh_host bigint NOT NULL,
    mesh_ip text COLLATE "C" NOT NULL,
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

-- The addresses of a project's mesh, made ahead of their use. The row of a live node
-- repeats what its peers need to know, so that they read one narrow table.
CREATE TABLE mesh_addresses (
    project_id uuid NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    host bigint NOT NULL,
    -- Null while the address is free.
    node_id uuid REFERENCES nodes (id) ON DELETE RESTRICT,
    hostname text COLLATE "C",
    public_key bytea,
    CONSTRAINT mesh_addresses_taken_check CHECK (
        (node_id IS NULL) = (hostname IS NULL) AND (node_id IS NULL) = (public_key IS NULL)),
    PRIMARY KEY (project_id, host)
);
CREATE UNIQUE INDEX mesh_addresses_node_id_key
    ON mesh_addresses (node_id) WHERE node_id IS NOT NULL;
-- A public key has at most one registered node in a project.
CREATE UNIQUE INDEX mesh_addresses_project_id_public_key_key
    ON mesh_addresses (project_id, public_key) WHERE public_key IS NOT NULL;
CREATE INDEX mesh_addresses_free_index
    ON mesh_addresses (project_id, host) WHERE node_id IS NULL;
