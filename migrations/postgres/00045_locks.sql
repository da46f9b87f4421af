-- The locks of --lock-backend postgres, one row each. Package lockwrap/postgres makes the
-- same table where it is used alone, and says what the columns mean.

-- +goose Up
CREATE TABLE _apiengine_platform.locks (
    lock    TEXT COLLATE "C" PRIMARY KEY,
    token   BIGINT NOT NULL,
    holder  TEXT NOT NULL,
    api     TEXT NOT NULL,
    since   TIMESTAMPTZ NOT NULL,
    expires TIMESTAMPTZ NOT NULL,
    kept    TEXT NOT NULL,
    line    TEXT[] NOT NULL,
    forget  TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- +goose Down
DROP TABLE _apiengine_platform.locks;
