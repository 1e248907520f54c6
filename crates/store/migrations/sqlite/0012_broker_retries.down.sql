ALTER TABLE outbox_events DROP COLUMN changed;
ALTER TABLE provisioned_resources DROP COLUMN next_parameter_values;
ALTER TABLE provisioned_resources DROP COLUMN next_blueprint_version_id;
ALTER TABLE provisioned_resources DROP COLUMN failure_observed;
ALTER TABLE provisioned_resources DROP COLUMN failed_at;
