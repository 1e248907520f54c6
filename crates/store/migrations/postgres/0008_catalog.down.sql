DROP TABLE idempotency_keys;
DROP TABLE label_definitions;
ALTER TABLE blueprint_versions DROP COLUMN retired_at;
ALTER TABLE blueprint_versions DROP COLUMN revision;
ALTER TABLE clusters DROP COLUMN namespace_prefix;

-- An older version knows no soft deletion: what was deleted would be there
-- again, so its name makes way for the one that is.
DROP INDEX cloud_credentials_cloud_id_index;
DROP INDEX cloud_credentials_cloud_id_name_key;
UPDATE cloud_credentials SET name = name || '-deleted-' || replace(id::text, '-', '')
    WHERE deleted_at IS NOT NULL;
ALTER TABLE cloud_credentials DROP COLUMN deleted_at;
ALTER TABLE cloud_credentials DROP COLUMN deletion_id;
CREATE UNIQUE INDEX cloud_credentials_cloud_id_name_key ON cloud_credentials (cloud_id, name);

DROP INDEX clouds_name_key;
UPDATE clouds SET name = name || '-deleted-' || replace(id::text, '-', '') WHERE deleted_at IS NOT NULL;
ALTER TABLE clouds DROP COLUMN deleted_at;
ALTER TABLE clouds DROP COLUMN deletion_id;
CREATE UNIQUE INDEX clouds_name_key ON clouds (name);

DROP INDEX projects_name_key;
UPDATE projects SET name = name || '-deleted-' || replace(id::text, '-', '') WHERE deleted_at IS NOT NULL;
ALTER TABLE projects DROP COLUMN deleted_at;
ALTER TABLE projects DROP COLUMN deletion_id;
ALTER TABLE projects DROP COLUMN labels;
CREATE UNIQUE INDEX projects_name_key ON projects (name);
