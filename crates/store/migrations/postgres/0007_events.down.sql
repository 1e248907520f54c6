DROP TABLE event_subscriptions;
DROP TABLE event_prunes;
DROP TABLE outbox_head;
DROP TABLE outbox_events;
DROP TABLE event_types;
