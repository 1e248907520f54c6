-- Access: whose a key is, and who gave it its present text. Approvals go by both.

ALTER TABLE api_keys ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN rotated_by TEXT;
UPDATE api_keys SET owner = name;
