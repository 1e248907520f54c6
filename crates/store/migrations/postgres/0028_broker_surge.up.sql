-- Two attempts of one resource at once: the new one becomes Ready before the old one goes.

-- Which attempt replaces which, who asked for it and why. Set exactly while both are there;
-- the last two say how the teardown of one of them goes.
ALTER TABLE resources ADD COLUMN surge_from uuid;
ALTER TABLE resources ADD COLUMN surge_to uuid;
ALTER TABLE resources ADD COLUMN surge_by text COLLATE "C";
ALTER TABLE resources ADD COLUMN surge_at timestamptz;
ALTER TABLE resources ADD COLUMN surge_reason text COLLATE "C";
-- In microseconds.
ALTER TABLE resources ADD COLUMN surge_retention bigint;
ALTER TABLE resources ADD COLUMN surge_deletion_id uuid;
ALTER TABLE resources ADD COLUMN surge_aborted integer;
-- 0 for an attempt that was made beside the one in use and did not replace it (yet). The
-- attempt of a resource is the one in use with the highest number.
ALTER TABLE provisioned_resources ADD COLUMN in_use integer NOT NULL DEFAULT 1;
-- What its node is called, for as long as it exists; null means the handle of the resource.
ALTER TABLE provisioned_resources ADD COLUMN hostname text COLLATE "C";

-- The brake counts the replacements whose old attempt is still to go.
CREATE INDEX resources_surge_by_index ON resources (surge_by, surge_at)
    WHERE surge_by IS NOT NULL;
-- Nobody declares a handle that a node has as its name.
CREATE INDEX provisioned_resources_hostname_index
    ON provisioned_resources (project_id, hostname) WHERE hostname IS NOT NULL;
