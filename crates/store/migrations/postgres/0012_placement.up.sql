-- The management clusters: where a cluster is, how it is reached and what was found
-- there; what stands in the namespace of a project, and whether it is to go.

ALTER TABLE clusters ADD COLUMN region text COLLATE "C";
ALTER TABLE clusters ADD COLUMN access text COLLATE "C";
ALTER TABLE clusters ADD COLUMN verified_at timestamptz;
ALTER TABLE clusters ADD COLUMN verification jsonb;

ALTER TABLE cluster_assignments ADD COLUMN withdrawn_at timestamptz;
ALTER TABLE cluster_assignments ADD COLUMN status jsonb;
