-- Nodes: bootstrap tokens, the nodes that enrolled with them, and their addresses.

-- The hash of a token, never the token.
CREATE TABLE bootstrap_tokens (
    id BLOB NOT NULL PRIMARY KEY,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    provisioned_resource_id BLOB NOT NULL REFERENCES provisioned_resources (id) ON DELETE RESTRICT,
    kind TEXT NOT NULL,
    hash BLOB NOT NULL,
    -- Who issued the token by hand; null if a loop did.
    issued_by TEXT,
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
-- The rule of core refuses a second use of a nonce; the index refuses the second of
-- two enrolments at once.
CREATE UNIQUE INDEX bootstrap_tokens_project_id_consumed_nonce_key
    ON bootstrap_tokens (project_id, consumed_nonce) WHERE consumed_nonce IS NOT NULL;

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
    -- The number of the node's address in the mesh of its project, and the address.
    -- They stay when the node has left; mesh_addresses says who has the number.
    mesh_host INTEGER NOT NULL,
    mesh_ip TEXT NOT NULL,
    -- What the agent reports about itself.
    binary_version TEXT,
    binary_checksum TEXT,
    agent_status TEXT,
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

-- The addresses of a project's mesh, made ahead of their use. The row of a live node
-- repeats what its peers need to know, so that they read one narrow table.
CREATE TABLE mesh_addresses (
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    host INTEGER NOT NULL,
    -- Null while the address is free.
    node_id BLOB REFERENCES nodes (id) ON DELETE RESTRICT,
    hostname TEXT,
    public_key BLOB,
    CONSTRAINT mesh_addresses_taken_check CHECK (
        (node_id IS NULL) = (hostname IS NULL) AND (node_id IS NULL) = (public_key IS NULL)),
    PRIMARY KEY (project_id, host)
) STRICT;
CREATE UNIQUE INDEX mesh_addresses_node_id_key
    ON mesh_addresses (node_id) WHERE node_id IS NOT NULL;
-- A public key has at most one registered node in a project.
CREATE UNIQUE INDEX mesh_addresses_project_id_public_key_key
    ON mesh_addresses (project_id, public_key) WHERE public_key IS NOT NULL;
CREATE INDEX mesh_addresses_free_index
    ON mesh_addresses (project_id, host) WHERE node_id IS NULL;
