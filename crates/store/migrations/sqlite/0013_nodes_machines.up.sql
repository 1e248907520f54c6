-- Nodes: the hash of the key that a node had until it was deregistered. It proves
-- nothing but that a repeated deregister comes from that node.

ALTER TABLE nodes ADD COLUMN former_key_hash BLOB;

-- The machines that people boot by hand (engine manual). A row is there until its machine
-- is gone.
CREATE TABLE manual_machines (
    provisioned_resource_id BLOB NOT NULL PRIMARY KEY
        REFERENCES provisioned_resources (id) ON DELETE RESTRICT,
    partition BLOB NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    owned_hash TEXT NOT NULL,
    -- The claim of its last writer.
    claim_token INTEGER NOT NULL,
    -- 1 if a person has to say that it is gone.
    confirm_gone INTEGER NOT NULL,
    made_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    terminating_at INTEGER
) STRICT;
CREATE INDEX manual_machines_partition_index
    ON manual_machines (partition, provisioned_resource_id);
