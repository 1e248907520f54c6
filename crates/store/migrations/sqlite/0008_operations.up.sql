-- Operations: the installation, its mode, its replicas, periodic tasks.

CREATE TABLE installation (
    -- The only value of this key is 1: there is exactly one installation.
    singleton INTEGER NOT NULL PRIMARY KEY DEFAULT 1
        CONSTRAINT installation_singleton_check CHECK (singleton = 1),
    id BLOB NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;

-- The mode of the whole installation, and the heartbeat that distinguishes a
-- restored database from the one that continued.
CREATE TABLE control (
    -- The only value of this key is 1: there is exactly one mode.
    singleton INTEGER NOT NULL PRIMARY KEY DEFAULT 1
        CONSTRAINT control_singleton_check CHECK (singleton = 1),
    revision INTEGER NOT NULL DEFAULT 1,
    frozen_since INTEGER,
    frozen_until INTEGER,
    frozen_by TEXT,
    frozen_reason TEXT,
    observing_since INTEGER,
    observing_by TEXT,
    observing_reason TEXT,
    heartbeat INTEGER NOT NULL DEFAULT 0,
    public_url TEXT
) STRICT;
INSERT INTO control (singleton) VALUES (1);

-- The replicas that obey the mode, with the revision of it that each acknowledged.
CREATE TABLE replicas (
    worker TEXT NOT NULL PRIMARY KEY,
    seen_at INTEGER NOT NULL,
    lease_micros INTEGER NOT NULL,
    acknowledged INTEGER NOT NULL
) STRICT;

-- Tasks that one replica at a time runs periodically, with the columns of a claim.
CREATE TABLE periodic_tasks (
    name TEXT NOT NULL PRIMARY KEY,
    due_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    wake INTEGER NOT NULL DEFAULT 0,
    claim_token INTEGER NOT NULL DEFAULT 0,
    claimed_wake INTEGER NOT NULL DEFAULT 0,
    claimed_by TEXT,
    lease_until INTEGER,
    failures INTEGER NOT NULL DEFAULT 0,
    last_ended_at INTEGER,
    last_error TEXT
) STRICT;
