ALTER TABLE cluster_assignments DROP COLUMN status;
ALTER TABLE cluster_assignments DROP COLUMN withdrawn_at;
ALTER TABLE clusters DROP COLUMN verification;
ALTER TABLE clusters DROP COLUMN verified_at;
ALTER TABLE clusters DROP COLUMN access;
ALTER TABLE clusters DROP COLUMN region;
