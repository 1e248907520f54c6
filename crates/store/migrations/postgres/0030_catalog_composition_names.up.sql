-- Catalog: the name of its own under which the Composition of a version is installed, and which
-- its composites name. Written at publication: versions that were published before this, and
-- those that Slipway does not install, have none, and the cluster chooses for their composites.

ALTER TABLE blueprint_versions ADD COLUMN composition_name text;
