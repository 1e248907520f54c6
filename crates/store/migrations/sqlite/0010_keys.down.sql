DROP INDEX audit_entries_actor_index;
ALTER TABLE bootstrap_tokens DROP COLUMN issued_by;

-- Bound keys stay, with roles that an older version does not take for a key.
DROP INDEX api_keys_project_id_id_index;
DROP INDEX api_keys_previous_short_index;
ALTER TABLE api_keys DROP COLUMN created_by;
ALTER TABLE api_keys DROP COLUMN rotated_at;
ALTER TABLE api_keys DROP COLUMN previous_until;
ALTER TABLE api_keys DROP COLUMN previous_hash;
ALTER TABLE api_keys DROP COLUMN previous_short;
ALTER TABLE api_keys DROP COLUMN project_id;
ALTER TABLE api_keys DROP COLUMN revision;
