DROP INDEX provisioned_resources_partition_due_at_index;
CREATE INDEX provisioned_resources_due_at_index
    ON provisioned_resources (due_at, id) WHERE due_at IS NOT NULL;
ALTER TABLE provisioned_resources DROP COLUMN partition;
