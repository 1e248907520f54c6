DROP INDEX outbox_events_position_key;
CREATE UNIQUE INDEX outbox_events_position_key ON outbox_events (position);
CREATE UNIQUE INDEX outbox_events_id_key ON outbox_events (id);
ALTER TABLE outbox_events ADD CONSTRAINT outbox_events_event_type_fkey
    FOREIGN KEY (event_type) REFERENCES event_types (name) ON DELETE RESTRICT;
