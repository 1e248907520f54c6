ALTER TABLE outbox_events DROP COLUMN abandoned;
ALTER TABLE provisioned_resources DROP COLUMN abandoned_at;
