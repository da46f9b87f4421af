-- How far people have seen tasks come, by what slices told before their commit. A tenant's
-- database cannot keep it: on SQLite the slice itself has the writer.

-- +goose Up
CREATE TABLE task_shown (
    tenant  TEXT NOT NULL,
    task    TEXT NOT NULL,
    run     TEXT NOT NULL,
    current INTEGER NOT NULL,
    total   INTEGER NOT NULL,
    best    INTEGER NOT NULL,
    msg     TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, task)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE task_shown;
