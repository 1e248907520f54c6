-- Deletions are found by the name or the id of what they deleted, also to restore it.
CREATE INDEX deletions_name_index ON deletions (name, id);
CREATE INDEX deletions_target_id_index ON deletions (target_id, id);
