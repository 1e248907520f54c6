-- The workspace that owns a resource, and what the server is for. Written when it is declared.
ALTER TABLE resources ADD COLUMN workspace_id uuid;
ALTER TABLE resources ADD COLUMN group_id uuid;
ALTER TABLE resources ADD COLUMN server_role text COLLATE "C";
-- The gates count the servers of a group from it alone.
CREATE INDEX resources_group_id_index ON resources (group_id, deletion_id, surge_to, id)
    WHERE group_id IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX resources_workspace_id_index ON resources (workspace_id, id) WHERE workspace_id IS NOT NULL AND deleted_at IS NULL;
