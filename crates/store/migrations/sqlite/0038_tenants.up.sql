-- Tenants: databases of customers, and the jobs that make them.

CREATE TABLE tenant_profiles (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    -- Refers to secrets and has none.
    settings TEXT NOT NULL,
    deletion_id BLOB,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX tenant_profiles_name_key ON tenant_profiles (name) WHERE deleted_at IS NULL;
CREATE INDEX tenant_profiles_deletion_id_index ON tenant_profiles (deletion_id) WHERE deletion_id IS NOT NULL;

CREATE TABLE tenants (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    profile_id BLOB NOT NULL REFERENCES tenant_profiles (id) ON DELETE RESTRICT,
    name TEXT NOT NULL,
    -- What its objects on the target are named after.
    target_name TEXT NOT NULL,
    -- Of its last job.
    state TEXT NOT NULL,
    job_id BLOB NOT NULL,
    -- Counts jobs and tasks; the target refuses lower numbers.
    work INTEGER NOT NULL DEFAULT 1,
    version TEXT,
    present INTEGER NOT NULL DEFAULT 0,
    closed INTEGER NOT NULL DEFAULT 0,
    leaks INTEGER NOT NULL DEFAULT 0,
    purging INTEGER NOT NULL DEFAULT 0,
    migrating INTEGER NOT NULL DEFAULT 0,
    -- A version, and what a person found out about it.
    repair TEXT,
    -- When its task is due, or the lease of whoever carries it out ends.
    due_at INTEGER,
    failures INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    deletion_id BLOB,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX tenants_project_id_name_key ON tenants (project_id, name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX tenants_profile_id_target_name_key ON tenants (profile_id, target_name);
CREATE INDEX tenants_name_index ON tenants (name);
CREATE INDEX tenants_due_at_index ON tenants (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX tenants_deletion_id_index ON tenants (deletion_id) WHERE deletion_id IS NOT NULL;

-- The table of the library, as its ddl says.
CREATE TABLE tenant_jobs (
    id TEXT NOT NULL PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',
    attempts INTEGER NOT NULL DEFAULT 0,
    last_error TEXT NOT NULL DEFAULT '',
    metadata TEXT NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    partition TEXT NOT NULL DEFAULT '',
    retry_of TEXT DEFAULT NULL,
    due_at INTEGER DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    wake INTEGER NOT NULL DEFAULT 0,
    claim_token INTEGER NOT NULL DEFAULT 0,
    claimed_wake INTEGER NOT NULL DEFAULT 0,
    result_token INTEGER NOT NULL DEFAULT 0,
    claimed_by TEXT DEFAULT NULL,
    lease_until INTEGER DEFAULT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    made TEXT DEFAULT NULL,
    leaked TEXT NOT NULL DEFAULT '[]',
    history TEXT NOT NULL DEFAULT '[]',
    paused TEXT DEFAULT NULL,
    cancelled TEXT DEFAULT NULL,
    decommissioned_at INTEGER DEFAULT NULL
) STRICT;
CREATE INDEX idx_tenant_jobs_tenant ON tenant_jobs (tenant_id);
CREATE INDEX idx_tenant_jobs_state ON tenant_jobs (state);
CREATE UNIQUE INDEX idx_tenant_jobs_active ON tenant_jobs (tenant_id) WHERE state NOT IN ('ready', 'failed');
CREATE INDEX idx_tenant_jobs_due ON tenant_jobs (partition, due_at, id) WHERE due_at IS NOT NULL AND state NOT IN ('ready', 'failed');
