-- The managed resources of an attempt that are told to keep their external objects.

ALTER TABLE provisioned_resources ADD COLUMN kept_outside TEXT;
