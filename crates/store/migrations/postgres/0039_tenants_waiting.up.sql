-- Why the task of a tenant waits for a person.
ALTER TABLE tenants ADD COLUMN waiting_reason text COLLATE "C";
-- Numbers of work that were given out after the backup from which this database was restored:
-- higher than the first, lower than the second.
ALTER TABLE tenants ADD COLUMN lost_after bigint;
ALTER TABLE tenants ADD COLUMN lost_before bigint;
