-- Nodes: the hash of the key that a node had until it was deregistered. It proves
-- nothing but that a repeated deregister comes from that node.

ALTER TABLE nodes ADD COLUMN former_key_hash bytea;

-- The machines that people boot by hand (engine manual). A row is there until its machine
-- is gone.
CREATE TABLE manual_machines (
    provisioned_resource_id uuid NOT NULL PRIMARY KEY
        REFERENCES provisioned_resources (id) ON DELETE RESTRICT,
    partition uuid NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    owned_hash text NOT NULL,
    -- The claim of its last writer.
    claim_token bigint NOT NULL,
    -- 1 if a person has to say that it is gone.
    confirm_gone integer NOT NULL,
    made_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    terminating_at timestamptz
);
CREATE INDEX manual_machines_partition_index
    ON manual_machines (partition, provisioned_resource_id);
