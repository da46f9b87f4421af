-- Tenants that may have tasks which are not over, and what became of schedules. The tasks
-- themselves stand in the tenants' databases. The queue's own tables are the library's.

-- +goose Up
CREATE TABLE _apiengine_platform.task_marks (
    tenant    TEXT COLLATE "C" PRIMARY KEY,
    marked_at BIGINT NOT NULL,
    seen_at   BIGINT NOT NULL
);
-- Whoever was there before may have messages that wait.
INSERT INTO _apiengine_platform.task_marks (tenant, marked_at, seen_at) SELECT name, 0, 0 FROM _apiengine_platform.tenants;

CREATE TABLE _apiengine_platform.schedules (
    tenant    TEXT COLLATE "C" NOT NULL,
    api       TEXT COLLATE "C" NOT NULL,
    fired_at  BIGINT NOT NULL,
    last_task TEXT NOT NULL DEFAULT '',
    missed    BIGINT NOT NULL DEFAULT 0,
    missed_at BIGINT,
    reason    TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, api)
);

-- +goose Down
DROP TABLE _apiengine_platform.schedules;
DROP TABLE _apiengine_platform.task_marks;
