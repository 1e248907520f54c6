CREATE INDEX provisioned_resources_project_id_index ON provisioned_resources (project_id);
CREATE INDEX provisioned_resources_blueprint_version_id_index
    ON provisioned_resources (blueprint_version_id);
CREATE INDEX provisioned_resources_cloud_credential_id_index
    ON provisioned_resources (cloud_credential_id);
