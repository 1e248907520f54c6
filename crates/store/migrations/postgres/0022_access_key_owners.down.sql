ALTER TABLE api_keys DROP COLUMN rotated_by;
ALTER TABLE api_keys DROP COLUMN owner;
