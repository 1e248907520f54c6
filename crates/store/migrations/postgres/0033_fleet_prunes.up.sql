-- The removal that an agent refused last, and whether somebody confirmed it.
ALTER TABLE fleet_agents ADD COLUMN prune_digest text COLLATE "C";
ALTER TABLE fleet_agents ADD COLUMN prune_objects bigint;
ALTER TABLE fleet_agents ADD COLUMN prune_total bigint;
ALTER TABLE fleet_agents ADD COLUMN prune_refused_at timestamptz;
ALTER TABLE fleet_agents ADD COLUMN prune_confirmed_at timestamptz;
