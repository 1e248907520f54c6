DROP TABLE file_faults;
