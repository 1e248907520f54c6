-- Deletion: settings per project and kind, and what the purge needs.

-- The id is derived from project and kind: one row for each. Durations are in
-- microseconds; null leaves a field to the next setting.
CREATE TABLE deletion_settings (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    -- Null means every project, and every kind.
    project_id uuid,
    kind text COLLATE "C",
    grace bigint,
    retention bigint,
    approve_above bigint,
    -- 0 or 1.
    purge_protected integer,
    set_by text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    set_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE INDEX deletion_settings_project_id_index ON deletion_settings (project_id);

-- 0 or 1: whether purge protection was on at the request.
ALTER TABLE deletions ADD COLUMN purge_protected integer NOT NULL DEFAULT 0;
-- When it was purged, cancelled or restored.
ALTER TABLE deletions ADD COLUMN ended_at timestamptz;
-- When the loop last found a reason not to purge it.
ALTER TABLE deletions ADD COLUMN purge_checked_at timestamptz;
UPDATE deletions SET ended_at = statement_timestamp()
    WHERE state IN ('purged', 'cancelled', 'restored');
-- Attempts that retries took down are kept as long as everything else.
UPDATE deletions SET retention = 2592000000000, restorable_until = done_at + interval '30 days'
    WHERE kind = 'provisioned_resource' AND retention = 0;
CREATE INDEX deletions_restorable_until_index ON deletions (restorable_until)
    WHERE state = 'done';
CREATE INDEX deletions_purging_index ON deletions (id) WHERE state = 'purging';
CREATE INDEX deletions_ended_at_index ON deletions (ended_at) WHERE ended_at IS NOT NULL;
