DROP TABLE blueprint_definitions;
ALTER TABLE blueprint_versions DROP COLUMN install_definitions;
