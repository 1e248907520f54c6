-- Deletion: the one record of every removal, and leaks.

CREATE TABLE deletions (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    kind text COLLATE "C" NOT NULL,
    target_id uuid NOT NULL,
    state text COLLATE "C" NOT NULL,
    requested_by text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    members jsonb NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    scheduled_for timestamptz,
    done_at timestamptz,
    restorable_until timestamptz,
    CONSTRAINT deletions_state_check CHECK (state IN (
        'scheduled', 'running', 'done', 'purging', 'purged', 'cancelled', 'restored'))
);
-- A subject has at most one deletion in progress.
CREATE UNIQUE INDEX deletions_kind_target_id_key
    ON deletions (kind, target_id) WHERE state IN ('scheduled', 'running');
CREATE INDEX deletions_scheduled_for_index
    ON deletions (scheduled_for) WHERE state = 'scheduled';
-- A reader of one project finds the deletions of its subjects by this.
CREATE INDEX deletions_target_id_index ON deletions (target_id);

CREATE TABLE leak_records (
    id uuid NOT NULL PRIMARY KEY,
    -- The same finding has the same key; null if the resource loop recorded it.
    finding uuid,
    kind text COLLATE "C" NOT NULL,
    -- The attempt; the finding itself if it names none.
    subject_kind text COLLATE "C" NOT NULL,
    subject_id uuid NOT NULL,
    cluster_id uuid,
    cluster text COLLATE "C",
    namespace text COLLATE "C",
    object_name text COLLATE "C",
    object_uid text COLLATE "C",
    found_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    last_seen_at timestamptz,
    evidence jsonb NOT NULL,
    removal_requested_at timestamptz,
    removal_requested_by text COLLATE "C",
    removal_reason text COLLATE "C",
    resolved_at timestamptz,
    resolved_by text COLLATE "C",
    resolution text COLLATE "C"
);
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
    finding uuid NOT NULL PRIMARY KEY,
    cluster_id uuid NOT NULL,
    first_seen_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    last_seen_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE INDEX leak_suspicions_cluster_id_index ON leak_suspicions (cluster_id, last_seen_at);
