DROP TABLE mark_counters;
