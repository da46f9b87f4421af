-- Runs of which the database could not say whether their commit landed. outcome is NULL
-- until it is known; then it never changes.

-- +goose Up
CREATE TABLE _apiengine_platform.outcomes (
    execution TEXT COLLATE "C" PRIMARY KEY,
    tenant    TEXT COLLATE "C" NOT NULL,
    caller    TEXT NOT NULL,
    evidence  TEXT NOT NULL,
    outcome   TEXT,
    at        BIGINT NOT NULL
);

-- +goose Down
DROP TABLE _apiengine_platform.outcomes;
