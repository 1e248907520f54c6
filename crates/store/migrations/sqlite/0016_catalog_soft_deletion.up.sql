-- Blueprints, label definitions and clusters are deleted softly, as projects, clouds and
-- credentials are: the row stays, and its name is free again. The versions of a blueprint
-- are deleted with it.

ALTER TABLE blueprints ADD COLUMN deletion_id BLOB;
ALTER TABLE blueprints ADD COLUMN deleted_at INTEGER;
DROP INDEX blueprints_slug_key;
CREATE UNIQUE INDEX blueprints_slug_key ON blueprints (slug) WHERE deleted_at IS NULL;

ALTER TABLE label_definitions ADD COLUMN deletion_id BLOB;
ALTER TABLE label_definitions ADD COLUMN deleted_at INTEGER;
DROP INDEX label_definitions_key_key;
CREATE UNIQUE INDEX label_definitions_key_key ON label_definitions (key) WHERE deleted_at IS NULL;

ALTER TABLE clusters ADD COLUMN deletion_id BLOB;
ALTER TABLE clusters ADD COLUMN deleted_at INTEGER;
DROP INDEX clusters_name_key;
CREATE UNIQUE INDEX clusters_name_key ON clusters (name) WHERE deleted_at IS NULL;
