-- The removal that an agent refused last, and whether somebody confirmed it.
ALTER TABLE fleet_agents ADD COLUMN prune_digest TEXT;
ALTER TABLE fleet_agents ADD COLUMN prune_objects INTEGER;
ALTER TABLE fleet_agents ADD COLUMN prune_total INTEGER;
ALTER TABLE fleet_agents ADD COLUMN prune_refused_at INTEGER;
ALTER TABLE fleet_agents ADD COLUMN prune_confirmed_at INTEGER;
