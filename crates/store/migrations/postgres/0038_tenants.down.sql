DROP TABLE tenant_jobs;
DROP TABLE tenants;
DROP TABLE tenant_profiles;
