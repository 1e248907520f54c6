DROP INDEX leak_records_open_subject_index;
ALTER TABLE provisioned_resources DROP COLUMN unsettled_since;
ALTER TABLE provisioned_resources DROP COLUMN absence_proven_at;
