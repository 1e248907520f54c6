DROP TABLE audit_entries;
DROP TABLE idempotency_keys;
DROP TABLE api_keys;
