-- What the composites of a version are on a cluster, read out of its XRD when it
-- was published. Null for engines that need none, and in rows of an older version.
ALTER TABLE blueprint_versions ADD COLUMN api_group TEXT;
ALTER TABLE blueprint_versions ADD COLUMN api_version TEXT;
ALTER TABLE blueprint_versions ADD COLUMN kind TEXT;
ALTER TABLE blueprint_versions ADD COLUMN plural TEXT;
ALTER TABLE blueprint_versions ADD COLUMN scope TEXT;

-- Whether they have a field for tags of the cloud: 0 or 1.
ALTER TABLE blueprint_versions ADD COLUMN cloud_tags INTEGER;
