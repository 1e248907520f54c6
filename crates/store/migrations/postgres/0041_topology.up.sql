-- Workspaces, and the groups of their servers.

CREATE TABLE workspaces (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    project_id uuid NOT NULL CONSTRAINT workspaces_project_id_fkey REFERENCES projects (id) ON DELETE RESTRICT,
    name text COLLATE "C" NOT NULL,
    -- Nothing is made or taken down meanwhile.
    paused_at timestamptz,
    deletion_id uuid,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX workspaces_project_id_name_key ON workspaces (project_id, name) WHERE deleted_at IS NULL;
CREATE INDEX workspaces_name_index ON workspaces (name);
CREATE INDEX workspaces_deletion_id_index ON workspaces (deletion_id) WHERE deletion_id IS NOT NULL;

CREATE TABLE workspace_groups (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    workspace_id uuid NOT NULL CONSTRAINT workspace_groups_workspace_id_fkey REFERENCES workspaces (id) ON DELETE RESTRICT,
    project_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    -- A server on its own.
    single integer NOT NULL,
    role text COLLATE "C" NOT NULL,
    -- How many servers are to be there, and how many at least and at most.
    wanted bigint NOT NULL,
    min_count bigint NOT NULL,
    max_count bigint NOT NULL,
    hostname_pattern text COLLATE "C" NOT NULL,
    -- What a server is declared with, and what has to be there before it.
    made_of jsonb NOT NULL,
    depends_on jsonb NOT NULL,
    delete_lock integer NOT NULL,
    -- The declaration does not have it any more.
    dropped integer NOT NULL,
    -- The servers that go first if only a number is given.
    marked jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX workspace_groups_workspace_id_name_key ON workspace_groups (workspace_id, name);
CREATE INDEX workspace_groups_project_id_index ON workspace_groups (project_id);
