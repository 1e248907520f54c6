-- The orphan finder: what it saw, what became of it, and the periodic tasks of
-- which one replica does each.
-- The same finding has the same key; null where the resource loop recorded it.
ALTER TABLE leak_records ADD COLUMN finding BLOB;
ALTER TABLE leak_records ADD COLUMN cluster_id BLOB;
ALTER TABLE leak_records ADD COLUMN cluster TEXT;
ALTER TABLE leak_records ADD COLUMN namespace TEXT;
ALTER TABLE leak_records ADD COLUMN object_name TEXT;
ALTER TABLE leak_records ADD COLUMN object_uid TEXT;
ALTER TABLE leak_records ADD COLUMN last_seen_at INTEGER;
ALTER TABLE leak_records ADD COLUMN removal_requested_at INTEGER;
ALTER TABLE leak_records ADD COLUMN removal_requested_by TEXT;
ALTER TABLE leak_records ADD COLUMN removal_reason TEXT;
ALTER TABLE leak_records ADD COLUMN resolved_by TEXT;
ALTER TABLE leak_records ADD COLUMN resolution TEXT;
-- One open leak for one finding.
CREATE UNIQUE INDEX leak_records_finding_key
    ON leak_records (finding) WHERE resolved_at IS NULL;
CREATE INDEX leak_records_open_index
    ON leak_records (cluster_id, kind) WHERE resolved_at IS NULL;

-- What was seen, once or more often. A sighting that lasts becomes a leak; one
-- that a whole look does not see again is forgotten.
CREATE TABLE leak_suspicions (
    finding BLOB NOT NULL PRIMARY KEY,
    cluster_id BLOB NOT NULL,
    first_seen_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    last_seen_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE INDEX leak_suspicions_cluster_id_index ON leak_suspicions (cluster_id, last_seen_at);

-- What is done every so often by one replica, with the columns of a claim.
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
