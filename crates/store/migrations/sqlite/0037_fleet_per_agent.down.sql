DROP TABLE fleet_renderings;
ALTER TABLE deployment_objects DROP COLUMN per_agent;
ALTER TABLE fleet_agents DROP COLUMN tags;
