-- Deletion: plans that a second person approved.

ALTER TABLE deletion_plans ADD COLUMN approved_by text COLLATE "C";
ALTER TABLE deletion_plans ADD COLUMN approved_reason text COLLATE "C";
ALTER TABLE deletion_plans ADD COLUMN approved_at timestamptz;
ALTER TABLE deletion_plans ADD COLUMN approved_until timestamptz;
