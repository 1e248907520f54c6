-- Access: API keys, idempotency keys, the audit.

-- The hash of a key, never the key. The role of a key that is bound to a project
-- has the prefix `project-`: code that does not know the binding reads no role,
-- rather than one that reaches everything.
CREATE TABLE api_keys (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    name TEXT NOT NULL,
    short TEXT NOT NULL,
    hash BLOB NOT NULL,
    -- The key before the last rotation, which is valid until `previous_until`.
    previous_short TEXT,
    previous_hash BLOB,
    previous_until INTEGER,
    role TEXT NOT NULL,
    project_id BLOB,
    created_by TEXT,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    rotated_at INTEGER,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE UNIQUE INDEX api_keys_name_key ON api_keys (name);
CREATE UNIQUE INDEX api_keys_short_key ON api_keys (short);
CREATE INDEX api_keys_previous_short_index ON api_keys (previous_short);
CREATE INDEX api_keys_project_id_id_index ON api_keys (project_id, id);

-- A create inserts its key in the transaction that creates `subject_id`. The answer
-- follows in a second one; it stays null if the process ends in between.
CREATE TABLE idempotency_keys (
    id BLOB NOT NULL PRIMARY KEY,
    caller TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    route TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    subject_id BLOB NOT NULL,
    answer_status INTEGER,
    answer_location TEXT,
    answer_etag TEXT,
    answer_body TEXT,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    expires_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX idempotency_keys_caller_idempotency_key_key
    ON idempotency_keys (caller, idempotency_key);
CREATE INDEX idempotency_keys_expires_at_index ON idempotency_keys (expires_at);

CREATE TABLE audit_entries (
    id BLOB NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    actor TEXT NOT NULL,
    verb TEXT NOT NULL,
    subject_kind TEXT NOT NULL,
    subject_id BLOB NOT NULL,
    project_id BLOB,
    reason TEXT,
    details TEXT NOT NULL,
    correlation_id TEXT,
    -- The state change that the entry announces: whose, the revision that it gave that
    -- subject, and why; all null if there is none. Retention sets `changed_id` to null
    -- when it ends the history of the subject, and updates nothing else of an entry.
    -- No CHECK ties the columns together: every announcement would pay for it.
    changed_id BLOB,
    changed_revision INTEGER,
    from_state TEXT,
    to_state TEXT,
    why TEXT
) STRICT, WITHOUT ROWID;
-- The announced part of a history.
CREATE UNIQUE INDEX audit_entries_changed_id_changed_revision_key
    ON audit_entries (changed_id, changed_revision) WHERE changed_id IS NOT NULL;
CREATE INDEX audit_entries_subject_index ON audit_entries (subject_kind, subject_id, id);
CREATE INDEX audit_entries_project_id_index ON audit_entries (project_id, id);
CREATE INDEX audit_entries_actor_index ON audit_entries (actor, id);
