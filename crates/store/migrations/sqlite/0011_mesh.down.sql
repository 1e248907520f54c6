DROP INDEX bootstrap_tokens_project_id_consumed_nonce_index;
ALTER TABLE nodes DROP COLUMN agent_status;
ALTER TABLE nodes DROP COLUMN binary_checksum;
ALTER TABLE nodes DROP COLUMN binary_version;
DROP INDEX nodes_mesh_left_index;
DROP INDEX nodes_project_id_mesh_host_key;
ALTER TABLE nodes DROP COLUMN mesh_ip;
ALTER TABLE nodes DROP COLUMN mesh_host;
ALTER TABLE projects DROP COLUMN mesh_cidr;
