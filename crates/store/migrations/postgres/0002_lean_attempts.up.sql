-- Every claim, record and release moves `due_at`, so every one of them writes
-- all indexes of the row anew. These three are looked at only when a project, a
-- blueprint version or a credential is purged, which is rare and may scan.
DROP INDEX provisioned_resources_project_id_index;
DROP INDEX provisioned_resources_blueprint_version_id_index;
DROP INDEX provisioned_resources_cloud_credential_id_index;
