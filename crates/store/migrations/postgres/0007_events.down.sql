DROP INDEX resources_deleted_at_index;
DROP TABLE event_subscriptions;
ALTER TABLE outbox_head DROP COLUMN pruned_position;
