-- The broker: resources, their attempts, state changes, blockers.

CREATE TABLE resources (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    project_id uuid NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    handle text COLLATE "C" NOT NULL,
    labels jsonb NOT NULL,
    deletion_id uuid,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
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
    term text COLLATE "C" NOT NULL,
    resource_id uuid NOT NULL,
    PRIMARY KEY (term, resource_id)
);
CREATE FUNCTION resource_labels_derive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM resource_labels WHERE resource_id = old.id AND term = ANY (ARRAY(
            SELECT key FROM jsonb_each_text(old.labels)
            UNION ALL SELECT key || '=' || value FROM jsonb_each_text(old.labels)));
    END IF;
    INSERT INTO resource_labels (term, resource_id)
        SELECT key, new.id FROM jsonb_each_text(new.labels)
        UNION ALL SELECT key || '=' || value, new.id FROM jsonb_each_text(new.labels);
    RETURN NULL;
END $$;
CREATE TRIGGER resource_labels_on_insert AFTER INSERT ON resources FOR EACH ROW
    WHEN (new.labels <> '{}') EXECUTE FUNCTION resource_labels_derive();
CREATE TRIGGER resource_labels_on_update AFTER UPDATE OF labels ON resources FOR EACH ROW
    WHEN (old.labels <> new.labels) EXECUTE FUNCTION resource_labels_derive();

-- Every claim, record and release changes `due_at` and so writes all indexes of
-- the row anew: this table has as few as possible. Foreign keys to projects,
-- blueprint versions and credentials have no index; only a purge, which is rare,
-- looks a row up by them.
CREATE TABLE provisioned_resources (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    resource_id uuid NOT NULL REFERENCES resources (id) ON DELETE RESTRICT,
    project_id uuid NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    blueprint_version_id uuid NOT NULL REFERENCES blueprint_versions (id) ON DELETE RESTRICT,
    cloud_credential_id uuid NOT NULL REFERENCES cloud_credentials (id) ON DELETE RESTRICT,
    attempt integer NOT NULL,
    status text COLLATE "C" NOT NULL,
    phase_since timestamptz NOT NULL DEFAULT statement_timestamp(),
    -- When the resource was declared, or left a Ready that had lasted.
    unsettled_since timestamptz NOT NULL DEFAULT statement_timestamp(),
    failure_reason text COLLATE "C",
    xr_name text COLLATE "C" NOT NULL,
    bootstrap_token_id uuid,
    parameter_values jsonb NOT NULL,
    -- No default: null means that nobody asked, which a default would hide.
    deletion_requested_at timestamptz,
    -- When a second observation, one lease after Deleted, confirmed the absence.
    absence_proven_at timestamptz,
    observed jsonb,
    -- The cluster that the attempt lives on, whatever the placement becomes later.
    partition uuid NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    due_at timestamptz DEFAULT statement_timestamp(),
    wake bigint NOT NULL DEFAULT 0,
    claim_token bigint NOT NULL DEFAULT 0,
    claimed_wake bigint NOT NULL DEFAULT 0,
    claimed_by text COLLATE "C",
    lease_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT provisioned_resources_status_check CHECK (status IN (
        'Pending', 'Provisioning', 'Enrolling', 'Ready', 'Failed',
        'Deregistering', 'Deprovisioning', 'Deleted'))
);
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
    subject_id uuid NOT NULL,
    revision bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT statement_timestamp(),
    from_state text COLLATE "C",
    to_state text COLLATE "C" NOT NULL,
    why text COLLATE "C" NOT NULL,
    PRIMARY KEY (subject_id, revision)
);

CREATE TABLE blockers (
    subject_kind text COLLATE "C" NOT NULL,
    subject_id uuid NOT NULL,
    code text COLLATE "C" NOT NULL,
    since timestamptz NOT NULL DEFAULT statement_timestamp(),
    owner text COLLATE "C" NOT NULL,
    message text COLLATE "C" NOT NULL,
    evidence jsonb NOT NULL,
    next_retry_at timestamptz,
    PRIMARY KEY (subject_kind, subject_id, code)
);
-- Lists everything that one reason withholds, whatever the subject.
CREATE INDEX blockers_code_index ON blockers (code, subject_id);
