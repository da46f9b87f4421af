-- Runs of which the database could not say whether their commit landed. outcome is NULL
-- until it is known; then it never changes.

-- +goose Up
CREATE TABLE outcomes (
    execution TEXT PRIMARY KEY,
    tenant    TEXT NOT NULL,
    caller    TEXT NOT NULL,
    evidence  TEXT NOT NULL,
    outcome   TEXT,
    at        INTEGER NOT NULL
);

-- +goose Down
DROP TABLE outcomes;
