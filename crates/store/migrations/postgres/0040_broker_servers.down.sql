DROP INDEX resources_workspace_id_index;
DROP INDEX resources_group_id_index;
ALTER TABLE resources DROP COLUMN server_role;
ALTER TABLE resources DROP COLUMN group_id;
ALTER TABLE resources DROP COLUMN workspace_id;
