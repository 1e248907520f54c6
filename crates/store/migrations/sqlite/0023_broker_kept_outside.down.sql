ALTER TABLE provisioned_resources DROP COLUMN kept_outside;
