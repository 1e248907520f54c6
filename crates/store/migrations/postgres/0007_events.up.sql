-- The highest position that was pruned: an old cursor can be told from a new
-- installation by it.
ALTER TABLE outbox_head ADD COLUMN pruned_position bigint NOT NULL DEFAULT 0;

-- Durable cursors. What makes a subscription due is that the outbox goes on
-- behind its position, which the claim compares itself; so nothing wakes one.
-- `due_at` only keeps it away while it is claimed and after a failure.
CREATE TABLE event_subscriptions (
    id uuid NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    last_error text COLLATE "C",
    published_at timestamptz,
    due_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    wake bigint NOT NULL DEFAULT 0,
    claim_token bigint NOT NULL DEFAULT 0,
    claimed_wake bigint NOT NULL DEFAULT 0,
    claimed_by text COLLATE "C",
    lease_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX event_subscriptions_name_key ON event_subscriptions (name);

-- Retention looks for what has been gone for long enough.
CREATE INDEX resources_deleted_at_index ON resources (deleted_at) WHERE deleted_at IS NOT NULL;
