-- The highest position that was pruned: an old cursor can be told from a new
-- installation by it.
ALTER TABLE outbox_head ADD COLUMN pruned_position INTEGER NOT NULL DEFAULT 0;

-- Durable cursors. What makes a subscription due is that the outbox goes on
-- behind its position, which the claim compares itself; so nothing wakes one.
-- `due_at` only keeps it away while it is claimed and after a failure.
CREATE TABLE event_subscriptions (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    position INTEGER NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    published_at INTEGER,
    due_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    wake INTEGER NOT NULL DEFAULT 0,
    claim_token INTEGER NOT NULL DEFAULT 0,
    claimed_wake INTEGER NOT NULL DEFAULT 0,
    claimed_by TEXT,
    lease_until INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX event_subscriptions_name_key ON event_subscriptions (name);

-- Retention looks for what has been gone for long enough.
CREATE INDEX resources_deleted_at_index ON resources (deleted_at) WHERE deleted_at IS NOT NULL;
