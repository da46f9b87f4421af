-- How far people have seen tasks come, by what slices told before their commit. A tenant's
-- database cannot keep it: on SQLite the slice itself has the writer.

-- +goose Up
CREATE TABLE _apiengine_platform.task_shown (
    tenant  TEXT COLLATE "C" NOT NULL,
    task    TEXT COLLATE "C" NOT NULL,
    run     TEXT NOT NULL,
    current BIGINT NOT NULL,
    total   BIGINT NOT NULL,
    best    BIGINT NOT NULL,
    msg     TEXT NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (tenant, task)
) WITH (fillfactor = 70);

-- +goose Down
DROP TABLE _apiengine_platform.task_shown;
