ALTER TABLE blueprint_versions DROP COLUMN cloud_tags;
ALTER TABLE blueprint_versions DROP COLUMN scope;
ALTER TABLE blueprint_versions DROP COLUMN plural;
ALTER TABLE blueprint_versions DROP COLUMN kind;
ALTER TABLE blueprint_versions DROP COLUMN api_version;
ALTER TABLE blueprint_versions DROP COLUMN api_group;
