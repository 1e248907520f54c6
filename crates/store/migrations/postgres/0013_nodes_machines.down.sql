DROP TABLE manual_machines;
ALTER TABLE nodes DROP COLUMN former_key_hash;
