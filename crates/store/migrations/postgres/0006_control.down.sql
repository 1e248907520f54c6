DROP INDEX blockers_code_index;
DROP TABLE replicas;
DROP TABLE control;
