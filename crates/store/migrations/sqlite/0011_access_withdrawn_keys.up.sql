-- Access: the texts that keys no longer have.

-- The hash of every key text that was rotated away, replaced by a start or revoked.
-- A start installs none of them. A text in its overlap is here already: its key still
-- accepts it, and no other key takes it. Rows are only added; one has about 50 bytes.
CREATE TABLE withdrawn_keys (
    hash BLOB NOT NULL PRIMARY KEY,
    withdrawn_at INTEGER NOT NULL
        DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT, WITHOUT ROWID;

-- What the keys themselves remember of earlier texts.
INSERT INTO withdrawn_keys (hash)
SELECT previous_hash FROM api_keys WHERE previous_hash IS NOT NULL
UNION
SELECT hash FROM api_keys WHERE revoked_at IS NOT NULL;
