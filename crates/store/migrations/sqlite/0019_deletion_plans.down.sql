DROP TABLE deletion_plans;
