-- Access: whose a key is, and who gave it its present text. Approvals go by both.

ALTER TABLE api_keys ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN rotated_by text COLLATE "C";
UPDATE api_keys SET owner = name;
