-- Catalog: whether the resources of a version use the ProviderConfig of their own credential
-- (1) or the one that the project shares (0). Written at publication: versions that were
-- published before this keep the shared one, whatever parameters they declare.

ALTER TABLE blueprint_versions ADD COLUMN own_provider_config integer NOT NULL DEFAULT 0;
