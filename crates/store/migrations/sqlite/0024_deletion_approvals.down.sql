ALTER TABLE deletion_plans DROP COLUMN approved_until;
ALTER TABLE deletion_plans DROP COLUMN approved_at;
ALTER TABLE deletion_plans DROP COLUMN approved_reason;
ALTER TABLE deletion_plans DROP COLUMN approved_by;
