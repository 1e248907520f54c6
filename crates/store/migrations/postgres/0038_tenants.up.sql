-- Tenants: databases of customers, and the jobs that make them.

CREATE TABLE tenant_profiles (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    name text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    -- Refers to secrets and has none.
    settings jsonb NOT NULL,
    deletion_id uuid,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX tenant_profiles_name_key ON tenant_profiles (name) WHERE deleted_at IS NULL;
CREATE INDEX tenant_profiles_deletion_id_index ON tenant_profiles (deletion_id) WHERE deletion_id IS NOT NULL;

CREATE TABLE tenants (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    project_id uuid NOT NULL CONSTRAINT tenants_project_id_fkey REFERENCES projects (id) ON DELETE RESTRICT,
    profile_id uuid NOT NULL CONSTRAINT tenants_profile_id_fkey REFERENCES tenant_profiles (id) ON DELETE RESTRICT,
    name text COLLATE "C" NOT NULL,
    -- What its objects on the target are named after.
    target_name text COLLATE "C" NOT NULL,
    -- Of its last job.
    state text COLLATE "C" NOT NULL,
    job_id uuid NOT NULL,
    -- Counts jobs and tasks; the target refuses lower numbers.
    work bigint NOT NULL DEFAULT 1,
    version text COLLATE "C",
    present integer NOT NULL DEFAULT 0,
    closed integer NOT NULL DEFAULT 0,
    leaks integer NOT NULL DEFAULT 0,
    purging integer NOT NULL DEFAULT 0,
    migrating integer NOT NULL DEFAULT 0,
    -- A version, and what a person found out about it.
    repair text COLLATE "C",
    -- When its task is due, or the lease of whoever carries it out ends.
    due_at timestamptz,
    failures integer NOT NULL DEFAULT 0,
    last_error text COLLATE "C",
    deletion_id uuid,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX tenants_project_id_name_key ON tenants (project_id, name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX tenants_profile_id_target_name_key ON tenants (profile_id, target_name);
CREATE INDEX tenants_name_index ON tenants (name);
CREATE INDEX tenants_due_at_index ON tenants (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX tenants_deletion_id_index ON tenants (deletion_id) WHERE deletion_id IS NOT NULL;

-- The table of the library, as its ddl says.
CREATE TABLE tenant_jobs (
    id varchar(255) PRIMARY KEY,
    tenant_id varchar(255) NOT NULL,
    state varchar(32) NOT NULL DEFAULT 'pending',
    attempts integer NOT NULL DEFAULT 0,
    last_error text NOT NULL DEFAULT '',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    partition varchar(255) NOT NULL DEFAULT '',
    retry_of varchar(255) DEFAULT NULL,
    due_at timestamptz DEFAULT (clock_timestamp()),
    wake bigint NOT NULL DEFAULT 0,
    claim_token bigint NOT NULL DEFAULT 0,
    claimed_wake bigint NOT NULL DEFAULT 0,
    result_token bigint NOT NULL DEFAULT 0,
    claimed_by text DEFAULT NULL,
    lease_until timestamptz DEFAULT NULL,
    failures integer NOT NULL DEFAULT 0,
    made jsonb DEFAULT NULL,
    leaked jsonb NOT NULL DEFAULT '[]',
    history jsonb NOT NULL DEFAULT '[]',
    paused text DEFAULT NULL,
    cancelled text DEFAULT NULL,
    decommissioned_at timestamptz DEFAULT NULL
);
CREATE INDEX idx_tenant_jobs_tenant ON tenant_jobs (tenant_id);
CREATE INDEX idx_tenant_jobs_state ON tenant_jobs (state);
CREATE UNIQUE INDEX idx_tenant_jobs_active ON tenant_jobs (tenant_id) WHERE state NOT IN ('ready', 'failed');
CREATE INDEX idx_tenant_jobs_due ON tenant_jobs (partition, due_at, id) WHERE due_at IS NOT NULL AND state NOT IN ('ready', 'failed');
