DROP TABLE mesh_addresses;
DROP TABLE nodes;
DROP TABLE bootstrap_tokens;
