DROP TABLE blockers;
DROP TABLE phase_history;
DROP TABLE provisioned_resources;
DROP TABLE resource_labels;
DROP TABLE resources;
