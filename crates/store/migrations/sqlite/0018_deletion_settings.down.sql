DROP INDEX deletions_ended_at_index;
DROP INDEX deletions_purging_index;
DROP INDEX deletions_restorable_until_index;
ALTER TABLE deletions DROP COLUMN purge_checked_at;
ALTER TABLE deletions DROP COLUMN ended_at;
ALTER TABLE deletions DROP COLUMN purge_protected;
DROP TABLE deletion_settings;
