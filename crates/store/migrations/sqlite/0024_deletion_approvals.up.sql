-- Deletion: plans that a second person approved.

ALTER TABLE deletion_plans ADD COLUMN approved_by TEXT;
ALTER TABLE deletion_plans ADD COLUMN approved_reason TEXT;
ALTER TABLE deletion_plans ADD COLUMN approved_at INTEGER;
ALTER TABLE deletion_plans ADD COLUMN approved_until INTEGER;
