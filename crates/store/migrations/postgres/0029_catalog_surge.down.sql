ALTER TABLE blueprint_versions DROP COLUMN surge;
