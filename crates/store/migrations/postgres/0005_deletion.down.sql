DROP TABLE leak_suspicions;
DROP TABLE leak_records;
DROP TABLE deletions;
