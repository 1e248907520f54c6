-- Deletion: settings per project and kind, and what the purge needs.

-- The id is derived from project and kind: one row for each. Durations are in
-- microseconds; null leaves a field to the next setting.
CREATE TABLE deletion_settings (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    -- Null means every project, and every kind.
    project_id BLOB,
    kind TEXT,
    grace INTEGER,
    retention INTEGER,
    approve_above INTEGER,
    -- 0 or 1.
    purge_protected INTEGER,
    set_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    set_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT, WITHOUT ROWID;
CREATE INDEX deletion_settings_project_id_index ON deletion_settings (project_id);

-- 0 or 1: whether purge protection was on at the request.
ALTER TABLE deletions ADD COLUMN purge_protected INTEGER NOT NULL DEFAULT 0;
-- When it was purged, cancelled or restored.
ALTER TABLE deletions ADD COLUMN ended_at INTEGER;
-- When the loop last found a reason not to purge it.
ALTER TABLE deletions ADD COLUMN purge_checked_at INTEGER;
UPDATE deletions SET ended_at = CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)
    WHERE state IN ('purged', 'cancelled', 'restored');
-- Attempts that retries took down are kept as long as everything else.
UPDATE deletions SET retention = 2592000000000, restorable_until = done_at + 2592000000000
    WHERE kind = 'provisioned_resource' AND retention = 0;
CREATE INDEX deletions_restorable_until_index ON deletions (restorable_until)
    WHERE state = 'done';
CREATE INDEX deletions_purging_index ON deletions (id) WHERE state = 'purging';
CREATE INDEX deletions_ended_at_index ON deletions (ended_at) WHERE ended_at IS NOT NULL;
