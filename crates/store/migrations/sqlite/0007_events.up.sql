-- Events: the outbox, its positions, subscriptions.

-- A set that grows is a table, not a CHECK.
CREATE TABLE event_types (
    name TEXT NOT NULL PRIMARY KEY
) STRICT;

INSERT INTO event_types (name) VALUES
    ('broker.ProvisionedResourceRequested'),
    ('broker.ProvisionedResourceReady'),
    ('broker.ProvisionedResourceFailed'),
    ('broker.ProvisionedResourceDeleting'),
    ('broker.ProvisionedResourceDeleted');

-- Each index costs every announcement. The id has none: it is derived from the
-- columns of the unique index (docs/adr/0002-event-ids-are-derived.md). The type
-- has no foreign key: all transactions that announce the same type would lock one row.
CREATE TABLE outbox_events (
    -- The order of insertion. Events of one aggregate are inserted under its
    -- lock, so their order is that of their commits.
    seq INTEGER NOT NULL PRIMARY KEY,
    id BLOB NOT NULL,
    aggregate_kind TEXT NOT NULL,
    aggregate_id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    event_type TEXT NOT NULL,
    project_id BLOB NOT NULL,
    payload TEXT NOT NULL,
    occurred_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    position INTEGER
) STRICT;
-- An aggregate announces a type at most once per revision.
CREATE UNIQUE INDEX outbox_events_aggregate_id_revision_event_type_key
    ON outbox_events (aggregate_id, revision, event_type);
CREATE UNIQUE INDEX outbox_events_position_key ON outbox_events (position)
    WHERE position IS NOT NULL;
CREATE INDEX outbox_events_unpublished_index ON outbox_events (seq) WHERE position IS NULL;
-- A reader of one project reads only its events.
CREATE INDEX outbox_events_project_id_position_index ON outbox_events (project_id, position)
    WHERE position IS NOT NULL;

-- The relay and retention lock this row; hot transactions never do.
CREATE TABLE outbox_head (
    singleton INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (singleton = 1),
    last_position INTEGER NOT NULL DEFAULT 0,
    -- The highest position that retention removed. It distinguishes an expired
    -- cursor from one of another installation.
    pruned_position INTEGER NOT NULL DEFAULT 0,
    -- The end of the last prune with notes in `event_prunes`, and of the last without.
    noted_position INTEGER NOT NULL DEFAULT 0,
    unnoted_position INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO outbox_head (singleton) VALUES (1);

-- The highest removed position of each project, so that the cursor of a reader of
-- one project expires only if retention removed an event of that project.
CREATE TABLE event_prunes (
    project_id BLOB NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL
) STRICT;

-- Durable cursors. A subscription is due when the outbox continues behind its
-- position, which the claim compares itself, so nothing wakes one. `due_at` only
-- delays it while it is claimed, and after a failure.
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
