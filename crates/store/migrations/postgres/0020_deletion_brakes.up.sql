-- The brake of each key that has deleted something. A request to delete locks the row
-- of its key first, so that two of them count each other.
CREATE TABLE deletion_brakes (
    api_key_id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    name text COLLATE "C" NOT NULL,
    tripped_at timestamptz,
    tripped_why text COLLATE "C",
    released_by text COLLATE "C",
    released_reason text COLLATE "C",
    released_until timestamptz
);
CREATE INDEX deletion_brakes_tripped_index ON deletion_brakes (tripped_at)
    WHERE tripped_at IS NOT NULL;

-- What a caller deleted lately.
CREATE INDEX deletions_requested_by_index ON deletions (requested_by, requested_at);
