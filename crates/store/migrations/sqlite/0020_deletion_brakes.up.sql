-- The brake of each key that has deleted something. A request to delete locks the row
-- of its key first, so that two of them count each other.
CREATE TABLE deletion_brakes (
    api_key_id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    name TEXT NOT NULL,
    tripped_at INTEGER,
    tripped_why TEXT,
    released_by TEXT,
    released_reason TEXT,
    released_until INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX deletion_brakes_tripped_index ON deletion_brakes (tripped_at)
    WHERE tripped_at IS NOT NULL;

-- What a caller deleted lately.
CREATE INDEX deletions_requested_by_index ON deletions (requested_by, requested_at);
