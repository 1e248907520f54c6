-- Deletion: the leaks of a subject, which a report reads for every attempt.

CREATE INDEX leak_records_by_subject_index ON leak_records (subject_id);
