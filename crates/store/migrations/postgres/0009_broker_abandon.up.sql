-- Abandoned attempts: those that a person gave up proving gone.

ALTER TABLE provisioned_resources ADD COLUMN abandoned_at timestamptz;
-- Part of the envelope of an event, since its payload is a wire contract.
ALTER TABLE outbox_events ADD COLUMN abandoned integer NOT NULL DEFAULT 0;
