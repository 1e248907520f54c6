DROP TABLE workspace_groups;
DROP TABLE workspaces;
