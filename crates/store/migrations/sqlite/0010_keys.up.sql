-- Keys that people make: bound to a project, rotated with an overlap. The role
-- of a bound key is written with the prefix `project-`, so that a replica of an
-- older version, which knows no binding, takes it for no key at all.

ALTER TABLE api_keys ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
ALTER TABLE api_keys ADD COLUMN project_id BLOB;
ALTER TABLE api_keys ADD COLUMN previous_short TEXT;
ALTER TABLE api_keys ADD COLUMN previous_hash BLOB;
ALTER TABLE api_keys ADD COLUMN previous_until INTEGER;
ALTER TABLE api_keys ADD COLUMN rotated_at INTEGER;
ALTER TABLE api_keys ADD COLUMN created_by TEXT;
CREATE INDEX api_keys_previous_short_index ON api_keys (previous_short);
CREATE INDEX api_keys_project_id_id_index ON api_keys (project_id, id);

-- Who issued a token by hand; null if a loop did.
ALTER TABLE bootstrap_tokens ADD COLUMN issued_by TEXT;

CREATE INDEX audit_entries_actor_index ON audit_entries (actor, id);
