-- What the composites of a version are on a cluster, read out of its XRD when it
-- was published. Null for engines that need none, and in rows of an older version.
ALTER TABLE blueprint_versions ADD COLUMN api_group text COLLATE "C";
ALTER TABLE blueprint_versions ADD COLUMN api_version text COLLATE "C";
ALTER TABLE blueprint_versions ADD COLUMN kind text COLLATE "C";
ALTER TABLE blueprint_versions ADD COLUMN plural text COLLATE "C";
ALTER TABLE blueprint_versions ADD COLUMN scope text COLLATE "C";

-- Whether they have a field for tags of the cloud: 0 or 1.
ALTER TABLE blueprint_versions ADD COLUMN cloud_tags integer;
