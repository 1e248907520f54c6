ALTER TABLE fleet_agents DROP COLUMN prune_confirmed_at;
ALTER TABLE fleet_agents DROP COLUMN prune_refused_at;
ALTER TABLE fleet_agents DROP COLUMN prune_total;
ALTER TABLE fleet_agents DROP COLUMN prune_objects;
ALTER TABLE fleet_agents DROP COLUMN prune_digest;
