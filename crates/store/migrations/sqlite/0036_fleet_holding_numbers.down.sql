ALTER TABLE holdings DROP COLUMN sequence_id;
