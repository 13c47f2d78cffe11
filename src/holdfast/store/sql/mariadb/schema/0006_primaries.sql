-- Which server writes, as those found it that connected to it, and how often that has changed. The first server is not the
-- result of a failover: nothing can have been lost before `since` 0.
CREATE TABLE IF NOT EXISTS primaries (
    one bigint PRIMARY KEY CHECK (one = 1),
    server varchar(255) NOT NULL,
    generation bigint NOT NULL,
    since bigint NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;
