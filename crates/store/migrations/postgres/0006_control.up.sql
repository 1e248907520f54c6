-- The mode of the whole installation, the replicas that obey it, and the heartbeat
-- by which a restored database is told from the one that went on.
CREATE TABLE control (
    -- The only value of this key is 1: there is exactly one mode.
    singleton integer NOT NULL PRIMARY KEY DEFAULT 1 CHECK (singleton = 1),
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

CREATE TABLE replicas (
    worker text COLLATE "C" NOT NULL PRIMARY KEY,
    seen_at timestamptz NOT NULL,
    lease_micros bigint NOT NULL,
    acknowledged bigint NOT NULL
);

-- For the plan: what is withheld, whatever it is about.
CREATE INDEX blockers_code_index ON blockers (code, subject_id);
