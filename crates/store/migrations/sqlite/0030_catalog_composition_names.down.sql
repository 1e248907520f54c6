ALTER TABLE blueprint_versions DROP COLUMN composition_name;
