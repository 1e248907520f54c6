ALTER TABLE outbox_head DROP COLUMN unnoted_position;
ALTER TABLE outbox_head DROP COLUMN noted_position;
DROP TABLE event_prunes;
DROP INDEX nodes_project_id_public_key_index;
DROP INDEX deletions_target_id_index;
DROP INDEX outbox_events_project_id_position_index;
