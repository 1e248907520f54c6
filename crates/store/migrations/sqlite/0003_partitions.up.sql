-- The partition that an attempt is worked on through: the cluster it lives on. Null
-- only in rows that an older version wrote; a boot of this one takes them in.
ALTER TABLE provisioned_resources ADD COLUMN partition BLOB;
UPDATE provisioned_resources SET partition = s.cluster_id
    FROM cluster_assignments s WHERE s.project_id = provisioned_resources.project_id;
-- Each partition is claimed by itself.
DROP INDEX provisioned_resources_due_at_index;
CREATE INDEX provisioned_resources_partition_due_at_index
    ON provisioned_resources (partition, due_at, id) WHERE due_at IS NOT NULL;
