-- Deletion: plans. What a deletion would take away, stored for an hour.

CREATE TABLE deletion_plans (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    kind text COLLATE "C" NOT NULL,
    target_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    -- The project that the target is or belongs to.
    project_id uuid,
    -- 0 or 1: whether what is in the target goes with it.
    cascade integer NOT NULL DEFAULT 0,
    planned_by text COLLATE "C" NOT NULL,
    planned_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    expires_at timestamptz NOT NULL,
    -- The deletion that it became.
    used_by uuid,
    -- Of the members.
    digest text COLLATE "C" NOT NULL,
    -- JSON that nobody queries: everything that would go. As text, since the digest is of
    -- this text, and uncompressed, since it is written once and read once.
    members text COLLATE "C" NOT NULL,
    -- What people see.
    shown jsonb NOT NULL
);
ALTER TABLE deletion_plans ALTER COLUMN members SET STORAGE EXTERNAL;
CREATE INDEX deletion_plans_expires_at_index ON deletion_plans (expires_at);
CREATE INDEX deletion_plans_target_id_index ON deletion_plans (target_id, planned_by);
