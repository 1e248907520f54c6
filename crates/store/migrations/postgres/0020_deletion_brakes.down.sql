DROP INDEX deletions_requested_by_index;
DROP TABLE deletion_brakes;
