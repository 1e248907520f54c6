-- Operations: a counter for each high-water mark, the heartbeat at which the mark
-- was last read and compared. Rows stay when a cluster goes: its mark may be found
-- again.

CREATE TABLE mark_counters (
    partition BLOB NOT NULL,
    engine TEXT NOT NULL,
    heartbeat INTEGER NOT NULL,
    PRIMARY KEY (partition, engine)
) STRICT;
