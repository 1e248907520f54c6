-- Operations: the installation, its mode, its replicas, periodic tasks.

CREATE TABLE installation (
    -- The only value of this key is 1: there is exactly one installation.
    singleton integer NOT NULL PRIMARY KEY DEFAULT 1
        CONSTRAINT installation_singleton_check CHECK (singleton = 1),
    id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp()
);

-- The mode of the whole installation, and the heartbeat that distinguishes a
-- restored database from the one that continued.
CREATE TABLE control (
    -- The only value of this key is 1: there is exactly one mode.
    singleton integer NOT NULL PRIMARY KEY DEFAULT 1
        CONSTRAINT control_singleton_check CHECK (singleton = 1),
    revision bigint NOT NULL DEFAULT 1,
    frozen_since timestamptz,
    frozen_until timestamptz,
    frozen_by text COLLATE "C",
    frozen_reason text COLLATE "C",
    observing_since timestamptz,
    observing_by text COLLATE "C",
    observing_reason text COLLATE "C",
    heartbeat bigint NOT NULL DEFAULT 0,
    public_url text COLLATE "C"
);
INSERT INTO control (singleton) VALUES (1);

-- The replicas that obey the mode, with the revision of it that each acknowledged.
CREATE TABLE replicas (
    worker text COLLATE "C" NOT NULL PRIMARY KEY,
    seen_at timestamptz NOT NULL,
    lease_micros bigint NOT NULL,
    acknowledged bigint NOT NULL
);

-- Tasks that one replica at a time runs periodically, with the columns of a claim.
CREATE TABLE periodic_tasks (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    due_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    wake bigint NOT NULL DEFAULT 0,
    claim_token bigint NOT NULL DEFAULT 0,
    claimed_wake bigint NOT NULL DEFAULT 0,
    claimed_by text COLLATE "C",
    lease_until timestamptz,
    failures integer NOT NULL DEFAULT 0,
    last_ended_at timestamptz,
    last_error text COLLATE "C"
);
