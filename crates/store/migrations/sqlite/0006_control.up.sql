-- The mode of the whole installation, the replicas that obey it, and the heartbeat
-- by which a restored database is told from the one that went on.
CREATE TABLE control (
    -- The only value of this key is 1: there is exactly one mode.
    singleton INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (singleton = 1),
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

CREATE TABLE replicas (
    worker TEXT NOT NULL PRIMARY KEY,
    seen_at INTEGER NOT NULL,
    lease_micros INTEGER NOT NULL,
    acknowledged INTEGER NOT NULL
) STRICT;

-- For the plan: what is withheld, whatever it is about.
CREATE INDEX blockers_code_index ON blockers (code, subject_id);
