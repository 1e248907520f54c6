-- Workspaces, and the groups of their servers.

CREATE TABLE workspaces (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE RESTRICT,
    name TEXT NOT NULL,
    -- Nothing is made or taken down meanwhile.
    paused_at INTEGER,
    deletion_id BLOB,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX workspaces_project_id_name_key ON workspaces (project_id, name) WHERE deleted_at IS NULL;
CREATE INDEX workspaces_name_index ON workspaces (name);
CREATE INDEX workspaces_deletion_id_index ON workspaces (deletion_id) WHERE deletion_id IS NOT NULL;

CREATE TABLE workspace_groups (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    workspace_id BLOB NOT NULL REFERENCES workspaces (id) ON DELETE RESTRICT,
    project_id BLOB NOT NULL,
    name TEXT NOT NULL,
    -- A server on its own.
    single INTEGER NOT NULL,
    role TEXT NOT NULL,
    -- How many servers are to be there, and how many at least and at most.
    wanted INTEGER NOT NULL,
    min_count INTEGER NOT NULL,
    max_count INTEGER NOT NULL,
    hostname_pattern TEXT NOT NULL,
    -- What a server is declared with, and what has to be there before it.
    made_of TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    delete_lock INTEGER NOT NULL,
    -- The declaration does not have it any more.
    dropped INTEGER NOT NULL,
    -- The servers that go first if only a number is given.
    marked TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX workspace_groups_workspace_id_name_key ON workspace_groups (workspace_id, name);
CREATE INDEX workspace_groups_project_id_index ON workspace_groups (project_id);
