-- The mesh of a project; null in rows of an older version, which is the default.
ALTER TABLE projects ADD COLUMN mesh_cidr text COLLATE "C";

-- The number of a node's address in it, and the address. Null for nodes that an
-- older version enrolled. A number is in one row of a project at most: that of
-- its live holder, or of the last node that left with it and left it free.
ALTER TABLE nodes ADD COLUMN mesh_host bigint;
ALTER TABLE nodes ADD COLUMN mesh_ip text COLLATE "C";
CREATE UNIQUE INDEX nodes_project_id_mesh_host_key
    ON nodes (project_id, mesh_host) WHERE mesh_host IS NOT NULL;
CREATE INDEX nodes_mesh_left_index
    ON nodes (project_id, mesh_host) WHERE mesh_host IS NOT NULL AND deregistered_at IS NOT NULL;

-- What an agent says of itself.
ALTER TABLE nodes ADD COLUMN binary_version text COLLATE "C";
ALTER TABLE nodes ADD COLUMN binary_checksum text COLLATE "C";
ALTER TABLE nodes ADD COLUMN agent_status text COLLATE "C";

-- A nonce is looked up with each enrolment. Not unique: nobody asked before.
CREATE INDEX bootstrap_tokens_project_id_consumed_nonce_index
    ON bootstrap_tokens (project_id, consumed_nonce) WHERE consumed_nonce IS NOT NULL;
