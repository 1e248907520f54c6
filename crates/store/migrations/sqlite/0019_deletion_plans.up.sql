-- Deletion: plans. What a deletion would take away, stored for an hour.

CREATE TABLE deletion_plans (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    kind TEXT NOT NULL,
    target_id BLOB NOT NULL,
    name TEXT NOT NULL,
    -- The project that the target is or belongs to.
    project_id BLOB,
    -- 0 or 1: whether what is in the target goes with it.
    cascade INTEGER NOT NULL DEFAULT 0,
    planned_by TEXT NOT NULL,
    planned_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    expires_at INTEGER NOT NULL,
    -- The deletion that it became.
    used_by BLOB,
    -- Of the members.
    digest TEXT NOT NULL,
    -- JSON that nobody queries: everything that would go. The digest is of this text.
    members TEXT NOT NULL,
    -- What people see.
    shown TEXT NOT NULL
) STRICT;
CREATE INDEX deletion_plans_expires_at_index ON deletion_plans (expires_at);
CREATE INDEX deletion_plans_target_id_index ON deletion_plans (target_id, planned_by);
