-- Why the task of a tenant waits for a person.
ALTER TABLE tenants ADD COLUMN waiting_reason TEXT;
-- Numbers of work that were given out after the backup from which this database was restored:
-- higher than the first, lower than the second.
ALTER TABLE tenants ADD COLUMN lost_after INTEGER;
ALTER TABLE tenants ADD COLUMN lost_before INTEGER;
