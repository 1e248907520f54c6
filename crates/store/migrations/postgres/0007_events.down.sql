DROP TABLE event_subscriptions;
DROP TABLE event_prunes;
DROP TABLE outbox_head;
DROP TABLE event_positions;
DROP TABLE outbox_pending;
DROP TABLE outbox_events;
DROP FUNCTION outbox_pending_add();
