DROP TABLE blueprint_definitions;
DROP TABLE cluster_assignments;
DROP TABLE clusters;
