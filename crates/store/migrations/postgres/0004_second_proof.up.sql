-- When absence was proven a second time, one lease after Deleted; null until
-- then. Since when a resource has not stayed Ready; null in rows of before.
ALTER TABLE provisioned_resources ADD COLUMN absence_proven_at timestamptz;
ALTER TABLE provisioned_resources ADD COLUMN unsettled_since timestamptz;
-- A proof resolves whatever is open about its attempt.
CREATE INDEX leak_records_open_subject_index ON leak_records (subject_id) WHERE resolved_at IS NULL;
