-- Abandoned attempts: those that a person gave up proving gone.

ALTER TABLE provisioned_resources ADD COLUMN abandoned_at INTEGER;
-- Part of the envelope of an event, since its payload is a wire contract.
ALTER TABLE outbox_events ADD COLUMN abandoned INTEGER NOT NULL DEFAULT 0;
