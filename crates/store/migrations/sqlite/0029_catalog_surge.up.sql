-- Catalog: whether two attempts of one resource of this version may stand at once.

ALTER TABLE blueprint_versions ADD COLUMN surge INTEGER NOT NULL DEFAULT 0;
