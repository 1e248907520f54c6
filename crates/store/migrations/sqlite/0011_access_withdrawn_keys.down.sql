DROP TABLE withdrawn_keys;
