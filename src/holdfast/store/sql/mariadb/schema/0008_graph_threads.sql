-- Threads of other frameworks' graphs. Threads that were copied from each other have one `family`, whose values
-- they share. `refs`: the numbers of the values that a checkpoint refers to.
CREATE TABLE IF NOT EXISTS graph_threads (
    number bigint AUTO_INCREMENT PRIMARY KEY,
    tenant varchar(255) NOT NULL,
    thread varchar(512) NOT NULL,
    family bigint NOT NULL,
    owner varchar(255),
    term bigint NOT NULL DEFAULT 0,
    claimed_until bigint,
    created_at bigint NOT NULL,
    UNIQUE KEY graph_threads_by_id (tenant, thread),
    KEY graph_threads_of_family (family),
    CHECK ((owner IS NULL) = (claimed_until IS NULL))
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS graph_checkpoints (
    number bigint AUTO_INCREMENT PRIMARY KEY,
    thread_number bigint NOT NULL,
    ns varchar(500) NOT NULL,
    id varchar(120) NOT NULL,
    parent varchar(120),
    run_id varchar(255),
    listed tinyint(1) NOT NULL,
    written_at bigint NOT NULL,
    refs longtext NOT NULL,
    facets longtext NOT NULL,
    digest varbinary(255) NOT NULL,
    body longblob NOT NULL,
    UNIQUE KEY graph_checkpoints_by_id (thread_number, ns, id),
    KEY graph_checkpoints_of_run (run_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS graph_values (
    number bigint PRIMARY KEY,
    family bigint NOT NULL,
    base bigint,
    channel longtext NOT NULL,
    data longblob NOT NULL,
    KEY graph_values_of_family (family)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS graph_writes (
    number bigint AUTO_INCREMENT PRIMARY KEY,
    thread_number bigint NOT NULL,
    ns varchar(500) NOT NULL,
    checkpoint varchar(120) NOT NULL,
    task varchar(120) NOT NULL,
    idx bigint NOT NULL,
    path longtext NOT NULL,
    channel longtext NOT NULL,
    data longblob NOT NULL,
    UNIQUE KEY graph_writes_once (thread_number, checkpoint, ns, task, idx)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;
