DROP INDEX outbox_events_position_key;
CREATE UNIQUE INDEX outbox_events_position_key ON outbox_events (position);
CREATE UNIQUE INDEX outbox_events_id_key ON outbox_events (id);
