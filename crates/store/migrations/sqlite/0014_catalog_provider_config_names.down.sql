ALTER TABLE blueprint_versions DROP COLUMN own_provider_config;
