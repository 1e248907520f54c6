-- Nodes: the hash of the key that a node had until it was deregistered. It proves
-- nothing but that a repeated deregister comes from that node.

ALTER TABLE nodes ADD COLUMN former_key_hash bytea;
