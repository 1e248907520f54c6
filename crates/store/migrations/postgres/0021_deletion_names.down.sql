DROP INDEX deletions_target_id_index;
DROP INDEX deletions_name_index;
