-- Failures that stay on record, and retries that correct a declaration.

-- When the attempt failed, and what was observed then. Written once; `observed` goes on.
ALTER TABLE provisioned_resources ADD COLUMN failed_at INTEGER;
ALTER TABLE provisioned_resources ADD COLUMN failure_observed TEXT;
-- Of what the attempt that follows this one is made, if a retry corrected it.
ALTER TABLE provisioned_resources ADD COLUMN next_blueprint_version_id BLOB
    REFERENCES blueprint_versions (id) ON DELETE RESTRICT;
ALTER TABLE provisioned_resources ADD COLUMN next_parameter_values TEXT;
-- Part of the envelope of an event, since its payload is a wire contract.
ALTER TABLE outbox_events ADD COLUMN changed TEXT;

-- A Failed attempt is not observed any more, so its last observation is that of its failure.
UPDATE provisioned_resources SET failed_at = phase_since, failure_observed = observed
    WHERE status = 'Failed';
