-- Events: the outbox, its positions, subscriptions.

-- A set that grows is a table, not a CHECK.
CREATE TABLE event_types (
    name text COLLATE "C" NOT NULL PRIMARY KEY
);

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
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL,
    aggregate_kind text COLLATE "C" NOT NULL,
    aggregate_id uuid NOT NULL,
    revision bigint NOT NULL,
    event_type text COLLATE "C" NOT NULL,
    project_id uuid NOT NULL,
    payload jsonb NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    position bigint
);
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
    singleton integer NOT NULL PRIMARY KEY DEFAULT 1 CHECK (singleton = 1),
    last_position bigint NOT NULL DEFAULT 0,
    -- The highest position that retention removed. It distinguishes an expired
    -- cursor from one of another installation.
    pruned_position bigint NOT NULL DEFAULT 0,
    -- The end of the last prune with notes in `event_prunes`, and of the last without.
    noted_position bigint NOT NULL DEFAULT 0,
    unnoted_position bigint NOT NULL DEFAULT 0
);
INSERT INTO outbox_head (singleton) VALUES (1);

-- The highest removed position of each project, so that the cursor of a reader of
-- one project expires only if retention removed an event of that project.
CREATE TABLE event_prunes (
    project_id uuid NOT NULL PRIMARY KEY,
    position bigint NOT NULL
);

-- Durable cursors. A subscription is due when the outbox continues behind its
-- position, which the claim compares itself, so nothing wakes one. `due_at` only
-- delays it while it is claimed, and after a failure.
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
