DROP TABLE label_definitions;
DROP TABLE blueprint_versions;
DROP TABLE blueprints;
DROP TABLE credential_assignments;
DROP TABLE cloud_credentials;
DROP TABLE clouds;
DROP TABLE projects;
