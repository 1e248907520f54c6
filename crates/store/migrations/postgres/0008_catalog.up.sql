-- The catalog becomes something that people write: soft deletion with names
-- that are free again, labels of projects, retired versions, label definitions,
-- and the keys that make a create happen once.

ALTER TABLE projects ADD COLUMN labels jsonb NOT NULL DEFAULT '{}';
ALTER TABLE projects ADD COLUMN deletion_id uuid;
ALTER TABLE projects ADD COLUMN deleted_at timestamptz;
DROP INDEX projects_name_key;
CREATE UNIQUE INDEX projects_name_key ON projects (name) WHERE deleted_at IS NULL;

ALTER TABLE clouds ADD COLUMN deletion_id uuid;
ALTER TABLE clouds ADD COLUMN deleted_at timestamptz;
DROP INDEX clouds_name_key;
CREATE UNIQUE INDEX clouds_name_key ON clouds (name) WHERE deleted_at IS NULL;

ALTER TABLE cloud_credentials ADD COLUMN deletion_id uuid;
ALTER TABLE cloud_credentials ADD COLUMN deleted_at timestamptz;
DROP INDEX cloud_credentials_cloud_id_name_key;
CREATE UNIQUE INDEX cloud_credentials_cloud_id_name_key
    ON cloud_credentials (cloud_id, name) WHERE deleted_at IS NULL;
CREATE INDEX cloud_credentials_cloud_id_index ON cloud_credentials (cloud_id);

-- Null in rows of an older version, which wrote namespaces with its default.
ALTER TABLE clusters ADD COLUMN namespace_prefix text COLLATE "C";

ALTER TABLE blueprint_versions ADD COLUMN revision bigint NOT NULL DEFAULT 1;
ALTER TABLE blueprint_versions ADD COLUMN retired_at timestamptz;

CREATE TABLE label_definitions (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    key text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    propagate integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX label_definitions_key_key ON label_definitions (key);

-- Written in the transaction that creates what subject_id names. The answer
-- follows; it is null where that did not happen.
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
