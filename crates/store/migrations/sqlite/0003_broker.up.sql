-- The broker: resources, their attempts, state changes, blockers.

CREATE TABLE resources (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    handle TEXT NOT NULL,
    labels TEXT NOT NULL,
    deletion_id BLOB,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))
) STRICT;
-- A handle is free again once its resource is deleted.
CREATE UNIQUE INDEX resources_project_id_handle_key
    ON resources (project_id, handle) WHERE deleted_at IS NULL;
CREATE INDEX resources_project_id_id_index ON resources (project_id, id);
-- Lists by handle, over all projects and with the deleted ones.
CREATE INDEX resources_handle_id_index ON resources (handle, id);
-- Retention looks for resources that were deleted long enough ago.
CREATE INDEX resources_deleted_at_index ON resources (deleted_at) WHERE deleted_at IS NOT NULL;

-- The labels of each resource itself, as `key` and as `key=value` (a key has no `=`), so
-- that a list by label reads one range in the order of its answer, for either kind of
-- selector. Neither database has an index on JSON that is ordered by the id of the row.
-- Triggers derive the rows: whoever writes labels cannot forget them. Labels of
-- projects, which their resources inherit, are not here: the list asks for them first.
CREATE TABLE resource_labels (
    term TEXT NOT NULL,
    resource_id BLOB NOT NULL,
    PRIMARY KEY (term, resource_id)
) STRICT;
CREATE TRIGGER resource_labels_on_insert AFTER INSERT ON resources
    WHEN new.labels <> '{}'
BEGIN
    INSERT INTO resource_labels (term, resource_id)
        SELECT key, new.id FROM json_each(new.labels)
        UNION ALL SELECT key || '=' || value, new.id FROM json_each(new.labels);
END;
CREATE TRIGGER resource_labels_on_update AFTER UPDATE OF labels ON resources
    WHEN old.labels <> new.labels
BEGIN
    DELETE FROM resource_labels WHERE resource_id = old.id AND term IN (
        SELECT key FROM json_each(old.labels)
        UNION ALL SELECT key || '=' || value FROM json_each(old.labels));
    INSERT INTO resource_labels (term, resource_id)
        SELECT key, new.id FROM json_each(new.labels)
        UNION ALL SELECT key || '=' || value, new.id FROM json_each(new.labels);
END;

-- Every claim, record and release changes `due_at` and so writes all indexes of
-- the row anew: this table has as few as possible. Foreign keys to projects,
-- blueprint versions and credentials have no index; only a purge, which is rare,
-- looks a row up by them.
CREATE TABLE provisioned_resources (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    resource_id BLOB NOT NULL REFERENCES resources (id) ON DELETE RESTRICT,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    blueprint_version_id BLOB NOT NULL REFERENCES blueprint_versions (id) ON DELETE RESTRICT,
    cloud_credential_id BLOB NOT NULL REFERENCES cloud_credentials (id) ON DELETE RESTRICT,
    attempt INTEGER NOT NULL,
    status TEXT NOT NULL,
    phase_since INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    -- When the resource was declared, or left a Ready that had lasted.
    unsettled_since INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    failure_reason TEXT,
    xr_name TEXT NOT NULL,
    bootstrap_token_id BLOB,
    parameter_values TEXT NOT NULL,
    -- No default: null means that nobody asked, which a default would hide.
    deletion_requested_at INTEGER,
    -- When a second observation, one lease after Deleted, confirmed the absence.
    absence_proven_at INTEGER,
    observed TEXT,
    -- The cluster that the attempt lives on, whatever the placement becomes later.
    partition BLOB NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    wake INTEGER NOT NULL DEFAULT 0,
    claim_token INTEGER NOT NULL DEFAULT 0,
    claimed_wake INTEGER NOT NULL DEFAULT 0,
    claimed_by TEXT,
    lease_until INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    CONSTRAINT provisioned_resources_status_check CHECK (status IN (
        'Pending', 'Provisioning', 'Enrolling', 'Ready', 'Failed',
        'Deregistering', 'Deprovisioning', 'Deleted'))
) STRICT;
CREATE UNIQUE INDEX provisioned_resources_resource_id_attempt_key
    ON provisioned_resources (resource_id, attempt);
-- Lists by phase. It is the one index that lists cost the loop.
CREATE INDEX provisioned_resources_status_resource_id_index
    ON provisioned_resources (status, resource_id);
-- Each partition is claimed by itself, in the order in which its rows became due.
CREATE INDEX provisioned_resources_partition_due_at_index
    ON provisioned_resources (partition, due_at, id) WHERE due_at IS NOT NULL;

-- History, blockers, deletions, leaks, events and audit entries name their subject
-- by kind and id, without a foreign key: they outlive it.

-- State changes that no audit entry announces. The history of a subject is these rows
-- and its announced changes (`audit_entries.changed_id`), in the order of revisions.
-- Ids are unique over all kinds, so the kind is not stored.
CREATE TABLE state_changes (
    subject_id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    from_state TEXT,
    to_state TEXT NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (subject_id, revision)
) STRICT, WITHOUT ROWID;

CREATE TABLE blockers (
    subject_kind TEXT NOT NULL,
    subject_id BLOB NOT NULL,
    code TEXT NOT NULL,
    since INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    owner TEXT NOT NULL,
    message TEXT NOT NULL,
    evidence TEXT NOT NULL,
    next_retry_at INTEGER,
    PRIMARY KEY (subject_kind, subject_id, code)
) STRICT, WITHOUT ROWID;
-- Lists everything that one reason withholds, whatever the subject.
CREATE INDEX blockers_code_index ON blockers (code, subject_id);
