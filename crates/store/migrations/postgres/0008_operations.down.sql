DROP TABLE periodic_tasks;
DROP TABLE replicas;
DROP TABLE control;
DROP TABLE installation;
