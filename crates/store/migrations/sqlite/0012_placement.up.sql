-- The management clusters: where a cluster is, how it is reached and what was found
-- there; what stands in the namespace of a project, and whether it is to go.

ALTER TABLE clusters ADD COLUMN region TEXT;
ALTER TABLE clusters ADD COLUMN access TEXT;
ALTER TABLE clusters ADD COLUMN verified_at INTEGER;
ALTER TABLE clusters ADD COLUMN verification TEXT;

ALTER TABLE cluster_assignments ADD COLUMN withdrawn_at INTEGER;
ALTER TABLE cluster_assignments ADD COLUMN status TEXT;
