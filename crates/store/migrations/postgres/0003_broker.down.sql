DROP TABLE blockers;
DROP TABLE state_changes;
DROP TABLE provisioned_resources;
DROP TABLE resource_labels;
DROP TABLE resources;
DROP FUNCTION resource_labels_derive();
