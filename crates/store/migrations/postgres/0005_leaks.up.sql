-- The orphan finder: what it saw, what became of it, and the periodic tasks of
-- which one replica does each.
-- The same finding has the same key; null where the resource loop recorded it.
ALTER TABLE leak_records ADD COLUMN finding uuid;
ALTER TABLE leak_records ADD COLUMN cluster_id uuid;
ALTER TABLE leak_records ADD COLUMN cluster text COLLATE "C";
ALTER TABLE leak_records ADD COLUMN namespace text COLLATE "C";
ALTER TABLE leak_records ADD COLUMN object_name text COLLATE "C";
ALTER TABLE leak_records ADD COLUMN object_uid text COLLATE "C";
ALTER TABLE leak_records ADD COLUMN last_seen_at timestamptz;
ALTER TABLE leak_records ADD COLUMN removal_requested_at timestamptz;
ALTER TABLE leak_records ADD COLUMN removal_requested_by text COLLATE "C";
ALTER TABLE leak_records ADD COLUMN removal_reason text COLLATE "C";
ALTER TABLE leak_records ADD COLUMN resolved_by text COLLATE "C";
ALTER TABLE leak_records ADD COLUMN resolution text COLLATE "C";
-- One open leak for one finding.
CREATE UNIQUE INDEX leak_records_finding_key
    ON leak_records (finding) WHERE resolved_at IS NULL;
CREATE INDEX leak_records_open_index
    ON leak_records (cluster_id, kind) WHERE resolved_at IS NULL;

-- What was seen, once or more often. A sighting that lasts becomes a leak; one
-- that a whole look does not see again is forgotten.
CREATE TABLE leak_suspicions (
    finding uuid NOT NULL PRIMARY KEY,
    cluster_id uuid NOT NULL,
    first_seen_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    last_seen_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE INDEX leak_suspicions_cluster_id_index ON leak_suspicions (cluster_id, last_seen_at);

-- What is done every so often by one replica, with the columns of a claim.
CREATE TABLE periodic_tasks (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    due_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    wake bigint NOT NULL DEFAULT 0,
    claim_token bigint NOT NULL DEFAULT 0,
    claimed_wake bigint NOT NULL DEFAULT 0,
    claimed_by text COLLATE "C",
    lease_until timestamptz,
    failures integer NOT NULL DEFAULT 0,
    last_ended_at timestamptz,
    last_error text COLLATE "C"
);
