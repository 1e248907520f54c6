-- Deletion: grace, containers, retention, and protection. The members of a deletion are
-- the rows that carry its id.

ALTER TABLE deletions ADD COLUMN name TEXT NOT NULL DEFAULT '';
-- The project that the target is or belongs to.
ALTER TABLE deletions ADD COLUMN project_id BLOB;
ALTER TABLE deletions ADD COLUMN parent_id BLOB;
-- 0 or 1: whether what is in the target goes with it.
ALTER TABLE deletions ADD COLUMN cascade INTEGER NOT NULL DEFAULT 0;
ALTER TABLE deletions ADD COLUMN resources INTEGER NOT NULL DEFAULT 0;
-- How long its members are kept once it is done, in microseconds.
ALTER TABLE deletions ADD COLUMN retention INTEGER NOT NULL DEFAULT 2592000000000;
ALTER TABLE deletions DROP COLUMN members;
UPDATE deletions SET project_id = CASE
    WHEN kind = 'project' THEN target_id
    WHEN kind = 'resource' THEN (SELECT r.project_id FROM resources r WHERE r.id = target_id)
    WHEN kind = 'provisioned_resource' THEN
        (SELECT a.project_id FROM provisioned_resources a WHERE a.id = target_id) END;
UPDATE deletions SET name = coalesce(
    (SELECT p.name FROM projects p WHERE p.id = target_id),
    (SELECT c.name FROM clouds c WHERE c.id = target_id),
    (SELECT k.name FROM cloud_credentials k WHERE k.id = target_id),
    (SELECT r.handle FROM resources r WHERE r.id = target_id),
    (SELECT r.handle FROM provisioned_resources a JOIN resources r ON r.id = a.resource_id
        WHERE a.id = target_id),
    '');
UPDATE deletions SET restorable_until = done_at + 2592000000000 WHERE state = 'done';
DROP INDEX deletions_target_id_index;
-- A reader of one project finds its deletions by this.
CREATE INDEX deletions_project_id_index ON deletions (project_id, id);
CREATE INDEX deletions_parent_id_index ON deletions (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX deletions_running_index ON deletions (kind, id) WHERE state = 'running';
CREATE INDEX resources_deletion_id_index ON resources (deletion_id)
    WHERE deletion_id IS NOT NULL;

CREATE TABLE protections (
    subject_kind TEXT NOT NULL,
    subject_id BLOB NOT NULL,
    -- The project that contains the subject, or is it.
    project_id BLOB,
    name TEXT NOT NULL,
    set_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    set_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    lifted_by TEXT,
    lifted_reason TEXT,
    lifted_until INTEGER,
    PRIMARY KEY (subject_kind, subject_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX protections_project_id_index ON protections (project_id);
