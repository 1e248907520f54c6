-- Operations: a counter for each high-water mark, the heartbeat at which the mark
-- was last read and compared. Rows stay when a cluster goes: its mark may be found
-- again.

CREATE TABLE mark_counters (
    partition uuid NOT NULL,
    engine text COLLATE "C" NOT NULL,
    heartbeat bigint NOT NULL,
    PRIMARY KEY (partition, engine)
);
