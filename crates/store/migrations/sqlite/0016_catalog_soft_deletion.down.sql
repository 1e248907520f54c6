-- Nothing refers to a deleted cluster or label definition.
DELETE FROM clusters WHERE deleted_at IS NOT NULL;
DROP INDEX clusters_name_key;
CREATE UNIQUE INDEX clusters_name_key ON clusters (name);
ALTER TABLE clusters DROP COLUMN deleted_at;
ALTER TABLE clusters DROP COLUMN deletion_id;

DELETE FROM label_definitions WHERE deleted_at IS NOT NULL;
DROP INDEX label_definitions_key_key;
CREATE UNIQUE INDEX label_definitions_key_key ON label_definitions (key);
ALTER TABLE label_definitions DROP COLUMN deleted_at;
ALTER TABLE label_definitions DROP COLUMN deletion_id;

-- Deleted attempts refer to the versions of a deleted blueprint, so it stays, retired and
-- under a slug that nobody has.
UPDATE blueprint_versions SET retired_at = (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)) WHERE retired_at IS NULL
    AND blueprint_id IN (SELECT id FROM blueprints WHERE deleted_at IS NOT NULL);
UPDATE blueprints SET slug = 'deleted-' || lower(hex(id)) WHERE deleted_at IS NOT NULL;
DROP INDEX blueprints_slug_key;
CREATE UNIQUE INDEX blueprints_slug_key ON blueprints (slug);
ALTER TABLE blueprints DROP COLUMN deleted_at;
ALTER TABLE blueprints DROP COLUMN deletion_id;
