-- Tenants that may have tasks which are not over, and what became of schedules. The tasks
-- themselves stand in the tenants' databases. The queue's own tables are the library's.

-- +goose Up
CREATE TABLE task_marks (
    tenant    TEXT PRIMARY KEY,
    marked_at INTEGER NOT NULL,
    seen_at   INTEGER NOT NULL
) WITHOUT ROWID;
-- Whoever was there before may have messages that wait.
INSERT INTO task_marks (tenant, marked_at, seen_at) SELECT name, 0, 0 FROM tenants;

CREATE TABLE schedules (
    tenant    TEXT NOT NULL,
    api       TEXT NOT NULL,
    fired_at  INTEGER NOT NULL,
    last_task TEXT NOT NULL DEFAULT '',
    missed    INTEGER NOT NULL DEFAULT 0,
    missed_at INTEGER,
    reason    TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, api)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE schedules;
DROP TABLE task_marks;
