-- Access: API keys, idempotency keys, the audit.

-- The hash of a key, never the key. The role of a key that is bound to a project
-- has the prefix `project-`: code that does not know the binding reads no role,
-- rather than one that reaches everything.
CREATE TABLE api_keys (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    name text COLLATE "C" NOT NULL,
    short text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,
    -- The key before the last rotation, which is valid until `previous_until`.
    previous_short text COLLATE "C",
    previous_hash bytea,
    previous_until timestamptz,
    role text COLLATE "C" NOT NULL,
    project_id uuid,
    created_by text COLLATE "C",
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    rotated_at timestamptz,
    expires_at timestamptz,
    revoked_at timestamptz
);
CREATE UNIQUE INDEX api_keys_name_key ON api_keys (name);
CREATE UNIQUE INDEX api_keys_short_key ON api_keys (short);
CREATE INDEX api_keys_previous_short_index ON api_keys (previous_short);
CREATE INDEX api_keys_project_id_id_index ON api_keys (project_id, id);

-- A create inserts its key in the transaction that creates `subject_id`. The answer
-- follows in a second one; it stays null if the process ends in between.
CREATE TABLE idempotency_keys (
    id uuid NOT NULL PRIMARY KEY,
    caller text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL,
    route text COLLATE "C" NOT NULL,
    body_hash bytea NOT NULL,
    subject_id uuid NOT NULL,
    answer_status integer,
    answer_location text COLLATE "C",
    answer_etag text COLLATE "C",
    answer_body text COLLATE "C",
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    expires_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX idempotency_keys_caller_idempotency_key_key
    ON idempotency_keys (caller, idempotency_key);
CREATE INDEX idempotency_keys_expires_at_index ON idempotency_keys (expires_at);

CREATE TABLE audit_entries (
    id uuid NOT NULL PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT statement_timestamp(),
    actor text COLLATE "C" NOT NULL,
    verb text COLLATE "C" NOT NULL,
    subject_kind text COLLATE "C" NOT NULL,
    subject_id uuid NOT NULL,
    project_id uuid,
    reason text COLLATE "C",
    details jsonb NOT NULL,
    correlation_id text COLLATE "C",
    -- The state change that the entry announces: whose, the revision that it gave that
    -- subject, and why; all null if there is none. Retention sets `changed_id` to null
    -- when it ends the history of the subject, and updates nothing else of an entry.
    -- No CHECK ties the columns together: every announcement would pay for it.
    changed_id uuid,
    changed_revision bigint,
    from_state text COLLATE "C",
    to_state text COLLATE "C",
    why text COLLATE "C"
);
-- The announced part of a history.
CREATE UNIQUE INDEX audit_entries_changed_id_changed_revision_key
    ON audit_entries (changed_id, changed_revision) WHERE changed_id IS NOT NULL;
CREATE INDEX audit_entries_subject_index ON audit_entries (subject_kind, subject_id, id);
CREATE INDEX audit_entries_project_id_index ON audit_entries (project_id, id);
CREATE INDEX audit_entries_actor_index ON audit_entries (actor, id);
