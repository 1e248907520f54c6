-- Deletion: the one record of every removal, and leaks.

CREATE TABLE deletions (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    kind TEXT NOT NULL,
    target_id BLOB NOT NULL,
    state TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    members TEXT NOT NULL,
    requested_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    scheduled_for INTEGER,
    done_at INTEGER,
    restorable_until INTEGER,
    CONSTRAINT deletions_state_check CHECK (state IN (
        'scheduled', 'running', 'done', 'purging', 'purged', 'cancelled', 'restored'))
) STRICT;
-- A subject has at most one deletion in progress.
CREATE UNIQUE INDEX deletions_kind_target_id_key
    ON deletions (kind, target_id) WHERE state IN ('scheduled', 'running');
CREATE INDEX deletions_scheduled_for_index
    ON deletions (scheduled_for) WHERE state = 'scheduled';
-- A reader of one project finds the deletions of its subjects by this.
CREATE INDEX deletions_target_id_index ON deletions (target_id);

CREATE TABLE leak_records (
    id BLOB NOT NULL PRIMARY KEY,
    -- The same finding has the same key; null if the resource loop recorded it.
    finding BLOB,
    kind TEXT NOT NULL,
    -- The attempt; the finding itself if it names none.
    subject_kind TEXT NOT NULL,
    subject_id BLOB NOT NULL,
    cluster_id BLOB,
    cluster TEXT,
    namespace TEXT,
    object_name TEXT,
    object_uid TEXT,
    found_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    last_seen_at INTEGER,
    evidence TEXT NOT NULL,
    removal_requested_at INTEGER,
    removal_requested_by TEXT,
    removal_reason TEXT,
    resolved_at INTEGER,
    resolved_by TEXT,
    resolution TEXT
) STRICT;
CREATE INDEX leak_records_subject_index ON leak_records (kind, subject_id);
-- A proof of absence resolves every open leak of its attempt.
CREATE INDEX leak_records_open_subject_index ON leak_records (subject_id) WHERE resolved_at IS NULL;
-- A finding has at most one open leak.
CREATE UNIQUE INDEX leak_records_finding_key
    ON leak_records (finding) WHERE resolved_at IS NULL;
CREATE INDEX leak_records_open_index
    ON leak_records (cluster_id, kind) WHERE resolved_at IS NULL;

-- Findings that are not leaks yet. One that lasts becomes a leak; one that a
-- complete scan does not find again is dropped.
CREATE TABLE leak_suspicions (
    finding BLOB NOT NULL PRIMARY KEY,
    cluster_id BLOB NOT NULL,
    first_seen_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    last_seen_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE INDEX leak_suspicions_cluster_id_index ON leak_suspicions (cluster_id, last_seen_at);
