ALTER TABLE tenants DROP COLUMN lost_before;
ALTER TABLE tenants DROP COLUMN lost_after;
ALTER TABLE tenants DROP COLUMN waiting_reason;
