-- Events: the outbox, its positions, subscriptions.

-- Rows are inserted and, by retention, deleted; none is updated. Each index costs every
-- announcement. The id has none: it is derived from the columns of the unique index
-- (docs/adr/0002-event-ids-are-derived.md). The type is checked by its shape,
-- `family.PascalName`; a test compares it with the catalog of core. A foreign key to a
-- table of types was rejected: all transactions that announce the same type would lock
-- one row of it.
CREATE TABLE outbox_events (
    -- The order of insertion. Events of one aggregate are inserted under its
    -- lock, so their order is that of their commits.
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL,
    aggregate_kind text COLLATE "C" NOT NULL,
    aggregate_id uuid NOT NULL,
    revision bigint NOT NULL,
    event_type text COLLATE "C" NOT NULL,
    -- Null if the subject belongs to no project.
    project_id uuid,
    payload jsonb NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT outbox_events_event_type_check CHECK (event_type ~ '^[a-z]+[.][A-Z][A-Za-z]*$')
);
-- An aggregate announces a type at most once per revision.
CREATE UNIQUE INDEX outbox_events_aggregate_id_revision_event_type_key
    ON outbox_events (aggregate_id, revision, event_type);

-- The events that wait for their position. A trigger adds each event, so that no
-- announcer can forget it; the relay removes it. Without this table the relay would
-- have to compare the outbox with the positions from its front: the sequence has gaps
-- of transactions that failed, and of those that are still open.
CREATE TABLE outbox_pending (
    seq bigint NOT NULL PRIMARY KEY
);
CREATE FUNCTION outbox_pending_add() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox_pending (seq) VALUES (new.seq);
    RETURN NULL;
END $$;
CREATE TRIGGER outbox_events_pending AFTER INSERT ON outbox_events FOR EACH ROW
    EXECUTE FUNCTION outbox_pending_add();

-- The position of each event in the order of commits. The rows are narrow because the
-- relay writes one per event; it does not touch the event itself.
CREATE TABLE event_positions (
    position bigint NOT NULL PRIMARY KEY,
    seq bigint NOT NULL,
    project_id uuid
);
-- A reader of one project reads only its events; one without a project is for readers
-- of all projects.
CREATE INDEX event_positions_project_id_position_index
    ON event_positions (project_id, position);

-- The relay and retention lock this row; hot transactions never do.
CREATE TABLE outbox_head (
    singleton integer NOT NULL PRIMARY KEY DEFAULT 1
        CONSTRAINT outbox_head_singleton_check CHECK (singleton = 1),
    last_position bigint NOT NULL DEFAULT 0,
    -- The highest position that retention removed. It distinguishes an expired
    -- cursor from one of another installation.
    pruned_position bigint NOT NULL DEFAULT 0
);
INSERT INTO outbox_head (singleton) VALUES (1);

-- The highest removed position of each project, so that the cursor of a reader of
-- one project expires only if retention removed an event of that project. Readers of
-- all projects, who alone see events without one, go by `outbox_head`.
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
