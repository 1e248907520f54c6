DROP TABLE blueprint_deliveries;
ALTER TABLE blueprint_versions DROP COLUMN deliver;
