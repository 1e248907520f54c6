-- The catalog becomes something that people write: soft deletion with names
-- that are free again, labels of projects, retired versions, label definitions,
-- and the keys that make a create happen once.

ALTER TABLE projects ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';
ALTER TABLE projects ADD COLUMN deletion_id BLOB;
ALTER TABLE projects ADD COLUMN deleted_at INTEGER;
DROP INDEX projects_name_key;
CREATE UNIQUE INDEX projects_name_key ON projects (name) WHERE deleted_at IS NULL;

ALTER TABLE clouds ADD COLUMN deletion_id BLOB;
ALTER TABLE clouds ADD COLUMN deleted_at INTEGER;
DROP INDEX clouds_name_key;
CREATE UNIQUE INDEX clouds_name_key ON clouds (name) WHERE deleted_at IS NULL;

ALTER TABLE cloud_credentials ADD COLUMN deletion_id BLOB;
ALTER TABLE cloud_credentials ADD COLUMN deleted_at INTEGER;
DROP INDEX cloud_credentials_cloud_id_name_key;
CREATE UNIQUE INDEX cloud_credentials_cloud_id_name_key
    ON cloud_credentials (cloud_id, name) WHERE deleted_at IS NULL;
CREATE INDEX cloud_credentials_cloud_id_index ON cloud_credentials (cloud_id);

-- Null in rows of an older version, which wrote namespaces with its default.
ALTER TABLE clusters ADD COLUMN namespace_prefix TEXT;

ALTER TABLE blueprint_versions ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
ALTER TABLE blueprint_versions ADD COLUMN retired_at INTEGER;

CREATE TABLE label_definitions (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    key TEXT NOT NULL,
    description TEXT NOT NULL,
    propagate INTEGER NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
CREATE UNIQUE INDEX label_definitions_key_key ON label_definitions (key);

-- Written in the transaction that creates what subject_id names. The answer
-- follows; it is null where that did not happen.
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
